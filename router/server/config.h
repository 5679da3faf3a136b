// Configuration of kvasird: a TOML file and flags, into Options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "router/server/options.h"

namespace kvasir::server {

inline constexpr size_t kConfigBytesMax = 1 << 20;

// Sets the members of `options` that the TOML text names. `where` is the file's name, for messages.
// Errors: InvalidArgument (no TOML, with line and column; unknown key, with the nearest name; value
//         of another type or outside its bounds). `options` is then partly set.
base::Status ApplyConfigText(std::string_view text, std::string_view where, Options* options);

// What a command line of kvasird asks for.
struct CommandLine {
  Options options;
  std::string print;  // when not empty: print this (help or version) and stop with status 0
};

// Reads the arguments (without the program's name): first --config FILE, then the flags, which win;
// then CheckOptions.
// Errors: InvalidArgument (a usage error, status 2), or what reading the file gave.
base::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             std::string_view version);

}  // namespace kvasir::server

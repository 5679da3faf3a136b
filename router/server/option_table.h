// The keys of the configuration: name, meaning, bounds, member; one table for file, flags and help.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "engine/base/status.h"
#include "router/server/options.h"

namespace kvasir::server {

struct OptionKey {
  std::string_view name;  // "metrics_listen"; the flag is --metrics-listen
  std::string_view help;
  std::variant<std::string Options::*, int64_t Options::*> member;
  int64_t min = 0;                // numbers only
  int64_t max = 0;                // numbers only
  std::string_view choices = {};  // texts only: the allowed ones, separated by a space; empty: any
};

std::span<const OptionKey> OptionKeys();

// The flag of a key: "--metrics-listen".
std::string FlagOf(const OptionKey& key);

// Sets the member. Errors: InvalidArgument (outside bounds or choices, or of the other type; names
// the key and both values).
base::Status SetNumber(const OptionKey& key, int64_t value, Options* options);
base::Status SetText(const OptionKey& key, std::string_view value, Options* options);
// Reads a number when the key is one.
base::Status SetFromFlag(const OptionKey& key, std::string_view value, Options* options);

// InvalidArgument for a name that is no key: "unknown key 'lisen' in FILE; did you mean 'listen'?".
base::Status UnknownKey(std::string_view name, std::string_view where);

// What must hold between members. Errors: InvalidArgument (model or data missing; an address does
// not parse; `listen` is not on the loopback).
base::Status CheckOptions(const Options& options);

}  // namespace kvasir::server

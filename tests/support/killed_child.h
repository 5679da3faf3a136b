// A process that is killed (SIGKILL) after it said so much.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kvasir::testing {

// Starts the program `name` that lies beside this one, kills it when it has written `lines` lines,
// and returns all whole lines it wrote. The test fails when it ended by itself.
std::vector<std::string> RunAndKill(const std::string& name,
                                    const std::vector<std::string>& arguments, size_t lines);

}  // namespace kvasir::testing

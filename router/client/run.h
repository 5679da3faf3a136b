// Run: kvasir from its arguments to its exit status.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace kvasir::client {

// Where the program runs.
struct Environment {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool in_terminal = false;   // `in` is a terminal
  bool out_terminal = false;  // `out` is a terminal
  bool err_terminal = false;  // `err` is a terminal
  bool no_color = false;      // NO_COLOR is set and not empty (no-color.org)
};

// `arguments` without the program's name. Returns 0 when the command succeeded, 1 when the request
// failed, 2 when the arguments are wrong. In the format json a failure is also one JSON object on
// `err`.
int Run(const std::vector<std::string>& arguments, const Environment& environment);

}  // namespace kvasir::client

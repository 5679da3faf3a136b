// kvasir: the command line client.

#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <iostream>

#include "router/client/run.h"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // what the server speaks; libedit drops other bytes
  const char* no_color = std::getenv("NO_COLOR");
  const kvasir::client::Environment environment{
      .in = std::cin,
      .out = std::cout,
      .err = std::cerr,
      .in_terminal = isatty(STDIN_FILENO) == 1,
      .out_terminal = isatty(STDOUT_FILENO) == 1,
      .err_terminal = isatty(STDERR_FILENO) == 1,
      .no_color = no_color != nullptr && no_color[0] != '\0'};
  return kvasir::client::Run(std::vector<std::string>(argv + 1, argv + argc), environment);
}

// kvasir-eval: offline evaluation. Exit status 0 ok, 1 failed, 2 usage.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "eval/commands/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Offline evaluation of Kvasir: tokenizer, templates, numbers of the forward pass.",
               "kvasir-eval");
  app.require_subcommand(1);
  kvasir::base::Status status;
  kvasir::eval::AddTokenize(app, status);
  kvasir::eval::AddRender(app, status);
  kvasir::eval::AddLogits(app, status);
  kvasir::eval::AddHidden(app, status);
  kvasir::eval::AddGenerate(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "kvasir-eval: {}\n", kvasir::base::ToStd(status.message()));
  return 1;
}

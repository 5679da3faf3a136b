// Commands of kvasir-eval. Each adds one subcommand to the program; its callback prints the result
// to stdout and throws nothing: a failure is kept in `status`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "engine/base/status.h"

namespace kvasir::eval {

// tokenize: one JSON line per case {"name", "ids"}; needs no tensors; no BOS added.
void AddTokenize(CLI::App& app, base::Status& status);
// render: rendered text and ids of conversations, in the golden chat format.
void AddRender(CLI::App& app, base::Status& status);
// logits: rows at positions 15, 31, … and the last, top ids with log-probabilities, in the layout
// of the goldens.
void AddLogits(CLI::App& app, base::Status& status);
// hidden: the residual stream of the last token at the input of every layer and after the last, as
// float32.
void AddHidden(CLI::App& app, base::Status& status);
// generate: greedy ids.
void AddGenerate(CLI::App& app, base::Status& status);

}  // namespace kvasir::eval

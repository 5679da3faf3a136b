// What the commands of kvasir-eval read: JSON, JSON lines, and a model on a chosen path.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/model/page_pool.h"
#include "engine/model/tail.h"
#include "engine/runtime/loaded_model.h"

namespace kvasir::eval {

// The bytes of an even number of hexadecimal digits. Errors: InvalidArgument.
base::StatusOr<std::string> FromHex(const std::string& hex);

// Every line of `path` as JSON; blank lines are skipped. Errors: those of ReadFile; InvalidArgument
// naming the line.
base::StatusOr<std::vector<nlohmann::json>> ReadJsonLines(const std::string& path);

// Token ids of `path`: a JSON list, or an object with "tokens". Errors: those of ReadFile;
// InvalidArgument.
base::StatusOr<std::vector<int32_t>> ReadTokens(const std::string& path);

// Options of every command that runs the model, and the model they name.
struct ModelFlags {
  std::string model;
  std::string tokens;
  std::string path = "fast";  // fast or float
  std::string cpu;            // generic, avx2, avx512_vnni; empty: the strongest
  int threads = 0;

  void AddTo(CLI::App& app);
  // Errors: those of LoadedModel::Load; InvalidArgument (unknown path).
  base::StatusOr<runtime::LoadedModel> Load() const;
};

// Runs `tokens` through a new tail and gives the logits of the rows in `wanted` (ascending) to
// `row`, one after another. `observer` (may be null) sees the step that ends with the last token.
base::Status RunRows(
    runtime::LoadedModel& loaded, model::Tail& tail, const std::vector<int32_t>& tokens,
    const std::vector<int64_t>& wanted,
    const std::function<void(int64_t position, std::span<const float> logits)>& row,
    model::ForwardObserver* observer = nullptr);

double LogSumExp(std::span<const float> row);
int32_t ArgMax(std::span<const float> row);

}  // namespace kvasir::eval

// logits, hidden and generate: the numbers of the forward pass.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>

#include "eval/commands/commands.h"
#include "eval/commands/input.h"

namespace kvasir::eval {
namespace {

constexpr size_t kPagesBytesMax = size_t{8} << 30;

struct NumberFlags : ModelFlags {
  int top = 32;
  int count = 64;
  std::string out;
};

// Positions 15, 31, … and the last.
std::vector<int64_t> StoredPositions(int64_t tokens) {
  std::vector<int64_t> positions;
  for (int64_t position = 15; position < tokens - 1; position += 16) positions.push_back(position);
  positions.push_back(tokens - 1);
  return positions;
}

nlohmann::json RowJson(int64_t position, std::span<const float> logits, int top) {
  const size_t count = std::min<size_t>(top, logits.size());
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  ids.resize(count);
  const double total = LogSumExp(logits);
  std::vector<double> logprobs;
  for (const int32_t id : ids) logprobs.push_back(logits[id] - total);
  return {{"pos", position}, {"logsumexp", total}, {"ids", ids}, {"logprobs", logprobs}};
}

base::Status Logits(const NumberFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(const auto tokens, ReadTokens(flags.tokens));
  KVASIR_ASSIGN_OR_RETURN(auto loaded, flags.Load());
  model::PagePool pool(*loaded.backend, loaded.model->layout(), kPagesBytesMax);
  model::Tail tail(pool, 0);
  nlohmann::json rows = nlohmann::json::array();
  KVASIR_RETURN_IF_ERROR(RunRows(loaded, tail, tokens, StoredPositions(tokens.size()),
                                 [&](int64_t position, std::span<const float> logits) {
                                   rows.push_back(RowJson(position, logits, flags.top));
                                 }));
  const nlohmann::json result = {{"model", flags.model},
                                 {"path", loaded.backend->name()},
                                 {"tokens", tokens},
                                 {"rows", rows},
                                 {"n_vocab", loaded.model->config().n_vocab}};
  fmt::print("{}\n", result.dump());
  return base::OkStatus();
}

// The last row of every residual stream it sees.
class LastRow final : public model::ForwardObserver {
 public:
  explicit LastRow(int64_t n_embd) : n_embd_(n_embd) {}
  void OnResidual(int, const float* x, int64_t rows) override {
    layers.emplace_back(x + (rows - 1) * n_embd_, x + rows * n_embd_);
  }
  std::vector<std::vector<float>> layers;

 private:
  int64_t n_embd_;
};

base::Status Hidden(const NumberFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(const auto tokens, ReadTokens(flags.tokens));
  KVASIR_ASSIGN_OR_RETURN(auto loaded, flags.Load());
  model::PagePool pool(*loaded.backend, loaded.model->layout(), kPagesBytesMax);
  model::Tail tail(pool, 0);
  LastRow last(loaded.model->config().n_embd);
  KVASIR_RETURN_IF_ERROR(RunRows(loaded, tail, tokens, {}, nullptr, &last));
  const nlohmann::json result = {
      {"model", flags.model}, {"path", loaded.backend->name()}, {"hidden", last.layers}};
  fmt::print("{}\n", result.dump());
  return base::OkStatus();
}

base::Status Generate(const NumberFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(std::vector<int32_t> next, ReadTokens(flags.tokens));
  KVASIR_ASSIGN_OR_RETURN(auto loaded, flags.Load());
  model::PagePool pool(*loaded.backend, loaded.model->layout(), kPagesBytesMax);
  model::Tail tail(pool, 0);
  std::vector<int32_t> ids;
  const int64_t prompt = static_cast<int64_t>(next.size());
  if (prompt + flags.count > loaded.model->options().positions_max) {
    return base::InvalidArgument("{} prompt tokens and {} to generate, the context holds {}",
                                 prompt, flags.count, loaded.model->options().positions_max);
  }
  while (static_cast<int>(ids.size()) < flags.count) {
    KVASIR_RETURN_IF_ERROR(
        RunRows(loaded, tail, next, {static_cast<int64_t>(next.size()) - 1},
                [&](int64_t, std::span<const float> logits) { ids.push_back(ArgMax(logits)); }));
    next = {ids.back()};
  }
  fmt::print("{}\n", nlohmann::json(
                         {{"model", flags.model}, {"path", loaded.backend->name()}, {"ids", ids}})
                         .dump());
  return base::OkStatus();
}

}  // namespace

void AddLogits(CLI::App& app, base::Status& status) {
  auto flags = std::make_shared<NumberFlags>();
  CLI::App* command =
      app.add_subcommand("logits", "logits at positions 15, 31, … and the last, as JSON");
  flags->AddTo(*command);
  command->add_option("--top", flags->top, "ids a row")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->callback([flags, &status] { status = Logits(*flags); });
}

void AddHidden(CLI::App& app, base::Status& status) {
  auto flags = std::make_shared<NumberFlags>();
  CLI::App* command =
      app.add_subcommand("hidden", "residual stream of the last token, layer by layer, as JSON");
  flags->AddTo(*command);
  command->callback([flags, &status] { status = Hidden(*flags); });
}

void AddGenerate(CLI::App& app, base::Status& status) {
  auto flags = std::make_shared<NumberFlags>();
  CLI::App* command =
      app.add_subcommand("generate", "greedy continuation, end tokens ignored, as JSON");
  flags->AddTo(*command);
  command->add_option("-n", flags->count, "tokens to generate")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command->callback([flags, &status] { status = Generate(*flags); });
}

}  // namespace kvasir::eval

// kvasir-bench: tokens per second of prompts and of decoding, with the meaning of llama-bench's
// flags, next to the roof of the machine. Random token ids; greedy ids are not needed for speed.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/base/rng.h"
#include "engine/model/page_pool.h"
#include "engine/model/tail.h"
#include "engine/runtime/loaded_model.h"
#include "eval/bench/roof.h"

namespace kvasir::eval {
namespace {

struct Flags {
  std::string model, output = "table", path = "fast";
  int prompt = 512, generate = 128, depth = 0, repetitions = 5, threads = 0, verify = 0;
  std::vector<int> sequences = {1};
};

// One line of the result.
struct Case {
  int n_prompt = 0, n_gen = 0, n_depth = 0, n_seq = 1, n_verify = 0;
  double bytes_per_token = 0;
  std::vector<double> samples = {};  // tokens per second, all sequences together
};

double Mean(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double StandardDeviation(const std::vector<double>& samples) {
  if (samples.size() < 2) return 0;
  const double mean = Mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - mean) * (sample - mean);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

class Bench {
 public:
  Bench(runtime::LoadedModel& loaded, const Flags& flags)
      : loaded_(loaded),
        flags_(flags),
        pool_(*loaded.backend, loaded.model->layout(), size_t{12} << 30) {}

  // Prefill of n_prompt tokens in steps of rows_max.
  base::Status Prompt(Case& result) {
    for (int i = -1; i < flags_.repetitions; ++i) {
      model::Tail tail(pool_, 0);
      KVASIR_RETURN_IF_ERROR(Fill(tail, result.n_depth));
      const auto begin = Now();
      KVASIR_RETURN_IF_ERROR(Fill(tail, result.n_prompt));
      Record(i, begin, result.n_prompt, result);
    }
    return base::OkStatus();
  }

  // n_gen steps of `rows` rows (1, or a draft to verify) in each of n_seq sequences.
  base::Status Decode(Case& result) {
    const int rows = std::max(1, result.n_verify);
    std::vector<std::unique_ptr<model::Tail>> tails;
    for (int s = 0; s < result.n_seq; ++s) {
      tails.push_back(std::make_unique<model::Tail>(pool_, 0));
      KVASIR_RETURN_IF_ERROR(Fill(*tails.back(), result.n_depth));
    }
    std::vector<float> logits(static_cast<size_t>(result.n_seq) * rows *
                              loaded_.model->config().n_vocab);
    for (int i = -1; i < flags_.repetitions; ++i) {
      const auto begin = Now();
      for (int step = 0; step < result.n_gen; ++step) {
        KVASIR_RETURN_IF_ERROR(Step(tails, rows, logits));
      }
      Record(i, begin, static_cast<double>(result.n_gen) * result.n_seq * rows, result);
      for (auto& tail : tails) tail->Truncate(result.n_depth);
    }
    return base::OkStatus();
  }

 private:
  static std::chrono::steady_clock::time_point Now() { return std::chrono::steady_clock::now(); }

  // The first repetition (−1) warms up and is not counted.
  static void Record(int repetition, std::chrono::steady_clock::time_point begin, double tokens,
                     Case& result) {
    const std::chrono::duration<double> seconds = Now() - begin;
    if (repetition >= 0) result.samples.push_back(tokens / seconds.count());
  }

  int32_t NextToken() {
    return static_cast<int32_t>(base::UniformAt(1, 0, drawn_++) *
                                static_cast<double>(loaded_.model->config().n_vocab));
  }

  base::Status Fill(model::Tail& tail, int64_t count) {
    std::vector<float> logits(loaded_.model->config().n_vocab);
    for (int64_t left = count; left > 0;) {
      const int64_t rows = std::min(left, loaded_.model->options().rows_max);
      std::vector<int32_t> tokens(rows);
      for (int32_t& token : tokens) token = NextToken();
      KVASIR_RETURN_IF_ERROR(tail.Reserve(tail.end() + rows));
      const bool last = rows == left;
      const model::SequenceStep step = {
          .tokens = tokens, .tail = &tail, .mounts = {}, .logits_rows = last ? 1 : 0};
      KVASIR_RETURN_IF_ERROR(
          loaded_.model->Forward({&step, 1}, std::span(logits).first(last ? logits.size() : 0)));
      left -= rows;
    }
    return base::OkStatus();
  }

  base::Status Step(std::vector<std::unique_ptr<model::Tail>>& tails, int rows,
                    std::vector<float>& logits) {
    std::vector<std::vector<int32_t>> tokens(tails.size(), std::vector<int32_t>(rows));
    std::vector<model::SequenceStep> steps;
    for (size_t s = 0; s < tails.size(); ++s) {
      for (int32_t& token : tokens[s]) token = NextToken();
      KVASIR_RETURN_IF_ERROR(tails[s]->Reserve(tails[s]->end() + rows));
      steps.push_back(
          {.tokens = tokens[s], .tail = tails[s].get(), .mounts = {}, .logits_rows = rows});
    }
    return loaded_.model->Forward(steps, logits);
  }

  runtime::LoadedModel& loaded_;
  const Flags& flags_;
  model::PagePool pool_;
  uint64_t drawn_ = 0;
};

nlohmann::json ToJson(const Case& result, const Flags& flags, const runtime::LoadedModel& loaded,
                      double roof) {
  const double mean = Mean(result.samples);
  const double steps = result.n_gen > 0 ? mean / (result.n_seq * std::max(1, result.n_verify)) : 0;
  return {{"model_filename", flags.model},
          {"backend", loaded.backend->name()},
          {"n_prompt", result.n_prompt},
          {"n_gen", result.n_gen},
          {"n_depth", result.n_depth},
          {"n_threads", loaded.threads->threads()},
          {"n_seq", result.n_seq},
          {"n_verify", result.n_verify},
          {"avg_ts", mean},
          {"stddev_ts", StandardDeviation(result.samples)},
          {"samples_ts", result.samples},
          {"bytes_per_token", result.bytes_per_token},
          {"gb_per_s", steps * result.bytes_per_token / 1e9},
          {"roof_gb_per_s", roof / 1e9}};
}

void PrintTable(const nlohmann::json& rows) {
  fmt::print("{:<28} {:>10} {:>9}  {:>8} {:>7}\n", "test", "tokens/s", "±", "GB/s", "of roof");
  for (const auto& row : rows) {
    std::string test = row["n_gen"] == 0 ? fmt::format("pp{}", row["n_prompt"].get<int>())
                                         : fmt::format("tg{}", row["n_gen"].get<int>());
    if (row["n_depth"] != 0) test += fmt::format(" depth {}", row["n_depth"].get<int>());
    if (row["n_seq"] != 1) test += fmt::format(" {} sequences", row["n_seq"].get<int>());
    if (row["n_verify"] != 0) test += fmt::format(" verify {}", row["n_verify"].get<int>());
    const double rate = row["gb_per_s"], roof = row["roof_gb_per_s"];
    fmt::print("{:<28} {:>10.2f} {:>9.2f}  ", test, row["avg_ts"].get<double>(),
               row["stddev_ts"].get<double>());
    if (rate > 0) {
      fmt::print("{:>8.1f} {:>6.0f}%\n", rate, 100 * rate / roof);
    } else {
      fmt::print("{:>8} {:>7}\n", "", "");
    }
  }
}

base::Status Run(const Flags& flags) {
  int64_t positions = 0, logits_rows = 1;
  for (const int sequences : flags.sequences) {
    logits_rows = std::max<int64_t>(logits_rows, int64_t{sequences} * std::max(1, flags.verify));
  }
  positions = flags.depth + std::max(flags.prompt, flags.generate * std::max(1, flags.verify)) + 1;
  runtime::LoadOptions options;
  options.path = flags.model;
  options.threads = flags.threads;
  options.precision =
      flags.path == "float" ? kernels::Precision::kFloat : kernels::Precision::kFast;
  options.model = {.rows_max = std::max<int64_t>(512, logits_rows),
                   .logits_rows_max = logits_rows,
                   .positions_max = positions};
  KVASIR_ASSIGN_OR_RETURN(auto loaded, runtime::LoadedModel::Load(options, nullptr));
  const double roof = MeasureReadBandwidth(*loaded.threads);

  std::vector<Case> cases;
  if (flags.prompt > 0) cases.push_back({.n_prompt = flags.prompt, .n_depth = flags.depth});
  for (const int sequences : flags.sequences) {
    if (flags.generate > 0)
      cases.push_back({.n_gen = flags.generate, .n_depth = flags.depth, .n_seq = sequences});
    if (flags.verify > 0) {
      cases.push_back({.n_gen = flags.generate,
                       .n_depth = flags.depth,
                       .n_seq = sequences,
                       .n_verify = flags.verify});
    }
  }
  Bench bench(loaded, flags);
  nlohmann::json rows = nlohmann::json::array();
  for (Case& item : cases) {
    // Weights once a step, and the keys and values of the depth for every sequence.
    const kernels::KvLayout& layout = loaded.model->layout();
    item.bytes_per_token = static_cast<double>(loaded.model->weight_bytes_per_token()) +
                           static_cast<double>(item.n_seq) * item.n_depth *
                               layout.resident_bytes() / kernels::kPageSlots;
    KVASIR_RETURN_IF_ERROR(item.n_gen > 0 ? bench.Decode(item) : bench.Prompt(item));
    rows.push_back(ToJson(item, flags, loaded, roof));
  }
  if (flags.output == "json") {
    fmt::print("{}\n", rows.dump(2));
  } else {
    PrintTable(rows);
  }
  return base::OkStatus();
}

}  // namespace
}  // namespace kvasir::eval

int main(int argc, char** argv) {
  kvasir::eval::Flags flags;
  CLI::App app("Speed of prompts (pp) and decoding (tg) in tokens per second.", "kvasir-bench");
  app.add_option("--model,-m", flags.model, "GGUF file")->required();
  app.add_option("-p", flags.prompt, "prompt tokens; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("-n", flags.generate, "steps to decode; 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("-d", flags.depth, "tokens already in the context")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("-r", flags.repetitions, "repetitions")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("-t,--threads", flags.threads, "0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--seqs", flags.sequences, "sequences decoded together, a comma list")
      ->delimiter(',')
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--verify", flags.verify,
                 "also steps of so many rows a sequence, as a draft is verified")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  app.add_option("--path", flags.path, "fast or float")
      ->check(CLI::IsMember({"fast", "float"}))
      ->capture_default_str();
  app.add_option("-o", flags.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto status = kvasir::eval::Run(flags);
  if (status.ok()) return 0;
  fmt::print(stderr, "kvasir-bench: {}\n", kvasir::base::ToStd(status.message()));
  return 1;
}

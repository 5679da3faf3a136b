// Numbers of the forward pass against the float64 reference of tests/golden (its README has the
// tolerances). Method: stored rows of three sequences per model by 33-bucket KL, the whole last row
// by logit, greedy continuations. Goal: a fault in any operation, weight type or position shows;
// the float path is where small ones do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/test_models.h"

namespace kvasir {
namespace {

using kernels::CpuPath;
using kernels::Precision;
using testing::TestModel;

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in.good()) << path;
  return nlohmann::json::parse(in);
}

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

double LogSumExp(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(x - top);
  return top + std::log(sum);
}

int32_t ArgMax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// KL(reference || row) over the reference's top 32 and one bucket for the rest (golden README,
// "Tolerances").
double BucketKl(const nlohmann::json& reference, std::span<const float> row) {
  const double lse = LogSumExp(row);
  double kl = 0, p_rest = 1, q_rest = 1;
  for (size_t i = 0; i < reference["ids"].size(); ++i) {
    const double log_p = reference["logprobs"][i];
    const double log_q = row[reference["ids"][i].get<size_t>()] - lse;
    kl += std::exp(log_p) * (log_p - log_q);
    p_rest -= std::exp(log_p);
    q_rest -= std::exp(log_q);
  }
  if (p_rest > 1e-12 && q_rest > 1e-300) kl += p_rest * std::log(p_rest / q_rest);
  return kl;
}

struct Tolerance {
  double mean_kl, row_kl,
      last_row;  // last_row: largest logit difference; infinity where only top 1 counts
};
constexpr Tolerance kFloatTolerance = {1e-8, 1e-7, 1e-3};
constexpr Tolerance kFastTolerance = {0.01, 0.05, HUGE_VAL};

void CheckSequence(TestModel& m, const std::string& name, const std::string& sequence,
                   const Tolerance& tolerance) {
  SCOPED_TRACE(name + " " + sequence);
  const std::string prefix = "tests/golden/logits/" + name + "." + sequence;
  const auto golden = ReadJson(prefix + ".json");
  std::vector<int64_t> positions;
  for (const auto& row : golden["rows"]) positions.push_back(row["pos"]);
  model::Tail tail(*m.pool, 0);
  const auto logits = m.Run(tail, golden["tokens"].get<std::vector<int32_t>>(), positions);
  double sum = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const auto& row = golden["rows"][i];
    const std::span<const float> mine = std::span(logits).subspan(i * m.n_vocab(), m.n_vocab());
    const double kl = BucketKl(row, mine);
    ASSERT_FALSE(std::isnan(kl));
    EXPECT_LE(kl, tolerance.row_kl) << "position " << positions[i];
    sum += kl;
    const double margin = row["logprobs"][0].get<double>() - row["logprobs"][1].get<double>();
    if (margin > 0.5) {
      EXPECT_EQ(ArgMax(mine), row["ids"][0]) << "position " << positions[i];
    }
  }
  EXPECT_LE(sum / positions.size(), tolerance.mean_kl);
  std::printf("  %s %s on %s: mean KL %.2e over %zu rows\n", name.c_str(), sequence.c_str(),
              std::string(m.backend->name()).c_str(), sum / positions.size(), positions.size());

  const auto last = ReadFloats(prefix + ".last.f32");
  ASSERT_EQ(static_cast<int64_t>(last.size()), m.n_vocab());
  const float* mine = logits.data() + (positions.size() - 1) * m.n_vocab();
  double difference = 0;
  for (int64_t i = 0; i < m.n_vocab(); ++i)
    difference = std::max<double>(difference, std::abs(mine[i] - last[i]));
  EXPECT_LE(difference, tolerance.last_row);
}

void CheckSequences(TestModel& m, const std::string& name, const Tolerance& tolerance) {
  for (const char* sequence : {"short", "chat", "long"})
    CheckSequence(m, name, sequence, tolerance);
}

// All prompts side by side in one ragged batch; ids of each are compared as far as `count_of` says.
void CheckGreedy(TestModel& m, const std::string& name, double margin_min) {
  const auto golden = ReadJson("tests/golden/logits/" + name + ".greedy.json");
  const size_t count = golden["cases"].size();
  std::vector<std::unique_ptr<model::Tail>> tails;
  std::vector<std::vector<int32_t>> next(count), ids(count);
  for (size_t i = 0; i < count; ++i) {
    tails.push_back(std::make_unique<model::Tail>(*m.pool, 0));
    next[i] = golden["cases"][i]["prompt"].get<std::vector<int32_t>>();
  }
  std::vector<float> logits(count * m.n_vocab());
  for (int step = 0; step < golden["n"]; ++step) {
    std::vector<model::SequenceStep> steps;
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(tails[i]->Reserve(tails[i]->end() + next[i].size()).ok());
      steps.push_back({.tokens = next[i], .tail = tails[i].get(), .mounts = {}, .logits_rows = 1});
    }
    ASSERT_TRUE(m.model->Forward(steps, logits).ok());
    for (size_t i = 0; i < count; ++i) {
      const int32_t id = ArgMax(std::span(logits).subspan(i * m.n_vocab(), m.n_vocab()));
      ids[i].push_back(id);
      next[i] = {id};
    }
  }
  int compared = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto& item = golden["cases"][i];
    if (item["min_margin"].get<double>() < margin_min) continue;
    EXPECT_EQ(ids[i], item["ids"].get<std::vector<int32_t>>()) << name << " " << item["name"];
    ++compared;
  }
  EXPECT_GT(compared, 0);
  std::printf("  %s on %s: %d greedy continuations of 64 ids equal\n", name.c_str(),
              std::string(m.backend->name()).c_str(), compared);
}

std::vector<CpuPath> VectorPaths() {
  auto paths = kernels::AvailableCpuPaths();
  std::erase(paths, CpuPath::kGeneric);
  return paths;
}

TEST(LogitsGolden, SmolLm2OnEveryFastPathIsWithinTheInt8Tolerance) {
  for (const CpuPath path : VectorPaths()) {
    TestModel m(testing::FetchedModel(testing::kSmolLm2), path, Precision::kFast);
    CheckSequences(m, "smollm2", kFastTolerance);
    CheckGreedy(m, "smollm2", 0.15);
  }
}

TEST(LogitsGolden, SmolLm2OnEveryFloatPathEqualsTheReference) {
  for (const CpuPath path : VectorPaths()) {
    TestModel m(testing::FetchedModel(testing::kSmolLm2), path, Precision::kFloat);
    CheckSequences(m, "smollm2", kFloatTolerance);
    CheckGreedy(m, "smollm2", 0);
  }
}

TEST(LogitsGolden, SmolLm2OnTheGenericPathIsWithinTolerance) {
  TestModel m(testing::FetchedModel(testing::kSmolLm2), CpuPath::kGeneric, Precision::kFast);
  CheckSequence(m, "smollm2", "short", kFastTolerance);
}

TEST(LogitsGolden, Qwen05OnEveryFastPathIsWithinTheInt8Tolerance) {
  for (const CpuPath path : VectorPaths()) {
    TestModel m(testing::FetchedModel(testing::kQwen05), path, Precision::kFast);
    CheckSequences(m, "q05", kFastTolerance);
    CheckGreedy(m, "q05", 0.15);
  }
}

TEST(LogitsGolden, Qwen05OnEveryFloatPathEqualsTheReference) {
  for (const CpuPath path : VectorPaths()) {
    TestModel m(testing::FetchedModel(testing::kQwen05), path, Precision::kFloat);
    CheckSequences(m, "q05", kFloatTolerance);
    CheckGreedy(m, "q05", 0);
  }
}

// The rest of the generic path, which takes minutes: label slow.
TEST(LogitsGoldenGeneric, BothModelsOnBothPrecisionsWithTheirGreedyIds) {
  for (const auto& [name, file] :
       {std::pair("smollm2", testing::kSmolLm2), std::pair("q05", testing::kQwen05)}) {
    TestModel fast(testing::FetchedModel(file), CpuPath::kGeneric, Precision::kFast);
    CheckSequences(fast, name, kFastTolerance);
    CheckGreedy(fast, name, 0.15);
    TestModel exact(testing::FetchedModel(file), CpuPath::kGeneric, Precision::kFloat);
    CheckSequences(exact, name, kFloatTolerance);
    CheckGreedy(exact, name, 0);
  }
}

// Every stored logit and the greedy ids of the small models of the repository.
void CheckTiny(const std::string& name, CpuPath path, double tolerance) {
  SCOPED_TRACE(name + " " + std::string(kernels::Name(path)));
  const auto golden = ReadJson("tests/golden/tiny/" + name + ".json");
  TestModel m("tests/golden/tiny/" + name + ".gguf", path, Precision::kFloat);
  auto tokens = golden["tokens"].get<std::vector<int32_t>>();
  std::vector<int64_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  model::Tail tail(*m.pool, 0);
  auto logits = m.Run(tail, tokens, all);
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int64_t j = 0; j < m.n_vocab(); ++j) {
      const float mine = logits[i * m.n_vocab() + j];
      ASSERT_FALSE(std::isnan(mine));
      ASSERT_NEAR(mine, golden["logits"][i][j].get<double>(), tolerance)
          << "row " << i << " id " << j;
    }
  }
  std::vector<int32_t> greedy = {ArgMax(std::span(logits).last(m.n_vocab()))};
  while (greedy.size() < golden["greedy"].size()) {
    greedy.push_back(ArgMax(m.Run(tail, {greedy.back()}, {0})));
  }
  EXPECT_EQ(greedy, golden["greedy"].get<std::vector<int32_t>>());
}

TEST(LogitsGolden, TinyModelsOnEveryFloatPathEqualTheReference) {
  for (const CpuPath path : kernels::AvailableCpuPaths()) {
    CheckTiny("llama", path, 1e-4);
    CheckTiny("qwen2", path, 1e-4);
  }
}

// Residual stream of the last token of the short sequence, after every layer.
class LastRows final : public model::ForwardObserver {
 public:
  explicit LastRows(int64_t n_embd) : n_embd_(n_embd) {}
  void OnResidual(int, const float* x, int64_t rows) override {
    values.insert(values.end(), x + (rows - 1) * n_embd_, x + rows * n_embd_);
  }
  std::vector<float> values;

 private:
  int64_t n_embd_;
};

void CheckHidden(const std::string& name, const char* file) {
  const auto golden = ReadJson("tests/golden/logits/" + name + ".short.json");
  const auto tokens = golden["tokens"].get<std::vector<int32_t>>();
  TestModel m(testing::FetchedModel(file), kernels::AvailableCpuPaths().back(), Precision::kFloat);
  const int64_t n_embd = m.model->config().n_embd;
  LastRows rows(n_embd);
  model::Tail tail(*m.pool, 0);
  ASSERT_TRUE(tail.Reserve(tokens.size()).ok());
  const model::SequenceStep step = {
      .tokens = tokens, .tail = &tail, .mounts = {}, .logits_rows = 0};
  ASSERT_TRUE(m.model->Forward({&step, 1}, {}, nullptr, &rows).ok());
  const auto expected = ReadFloats("tests/golden/hidden/" + name + ".short.last_token.f32");
  // The file also holds the final norm, behind the n_layer + 1 rows of the residual stream.
  ASSERT_EQ(rows.values.size() + n_embd, expected.size());
  for (size_t layer = 0; layer * n_embd < rows.values.size(); ++layer) {
    double norm = 0, difference = 0;
    for (int64_t i = 0; i < n_embd; ++i) {
      const double want = expected[layer * n_embd + i];
      norm += want * want;
      difference += std::pow(rows.values[layer * n_embd + i] - want, 2);
    }
    // One float operation in a row of about 10 n_embd of them errs by 2^-24: 1e-4 is far above
    // their sum and far below a fault.
    ASSERT_LE(std::sqrt(difference), 1e-4 * std::sqrt(norm)) << name << " layer " << layer;
  }
}

TEST(LogitsGolden, ResidualStreamOfEveryLayerEqualsTheReference) {
  CheckHidden("smollm2", testing::kSmolLm2);
  CheckHidden("q05", testing::kQwen05);
}

}  // namespace
}  // namespace kvasir

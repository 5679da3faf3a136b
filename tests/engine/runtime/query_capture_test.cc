// Method: queries captured while requests run, against keys cut from the same sequence, both
// rotated here. Goal: a row's log-sum-exp is that of its own scores over every key it saw; and
// queries are the same bits whatever the chunk, what else runs, and how many steps were given up.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/gguf/float16.h"
#include "tests/engine/runtime/harness.h"

namespace kvasir::runtime {
namespace {

// Rows by (layer, position).
class Captured final : public QueryObserver {
 public:
  void OnQueries(int layer, int64_t first_position, int64_t rows, const float* queries,
                 const float* log_sum_exp) override {
    const auto& config = TinyRuntime::Get().model->config();
    const int64_t heads = config.n_head, line = heads * config.key_length;
    for (int64_t row = 0; row < rows; ++row) {
      Row& to = captured[{layer, first_position + row}];
      to.queries.assign(queries + row * line, queries + (row + 1) * line);
      to.log_sum_exp.assign(log_sum_exp + row * heads, log_sum_exp + (row + 1) * heads);
    }
  }

  struct Row {
    std::vector<float> queries, log_sum_exp;
    bool operator==(const Row&) const = default;
  };
  std::map<std::pair<int, int64_t>, Row> captured;
};

std::shared_ptr<Captured> Observe(GenerateRequest& request) {
  const auto captured = std::make_shared<Captured>();
  request.observer = captured;
  return captured;
}

// The key of a slot, rotated at `position`.
std::vector<float> RotatedKey(const kv::KvSegment& segment, int layer, int kv_head, int slot,
                              int64_t position) {
  const model::Model& model = *TinyRuntime::Get().model;
  const auto width = static_cast<int>(model.config().key_length);
  const auto* halves = reinterpret_cast<const uint16_t*>(segment.head(layer, kv_head).keys.data());
  std::vector<float> key(width);
  for (int i = 0; i < width; ++i) key[i] = gguf::HalfToFloat(halves[slot * width + i]);
  model.rope().Rotate(key.data(), width, position, key.data());
  return key;
}

TEST(QueryCapture, LogSumExpIsThatOfTheRowsScoresOverAllItSaw) {
  Harness h({});
  const int64_t tokens = 150;
  GenerateRequest request = h.Request(h.NewSequence(), Ids(1, tokens), 0, 0);
  const auto seen = Observe(request);
  const auto sequence = request.sequence;
  h.Run(h.Submit(std::move(request)));
  const auto segment = h.Cut(sequence, 0, tokens);
  ASSERT_TRUE(segment.ok()) << segment.status();

  const model::Model& model = *TinyRuntime::Get().model;
  const auto& config = model.config();
  const auto width = static_cast<int>(config.key_length);
  ASSERT_EQ(seen->captured.size(), static_cast<size_t>(tokens * config.n_layer));
  for (int layer = 0; layer < config.n_layer; ++layer) {
    for (const int64_t position : {int64_t{0}, int64_t{63}, int64_t{64}, tokens - 1}) {
      const Captured::Row& row = seen->captured.at({layer, position});
      for (int head = 0; head < config.n_head; ++head) {
        std::vector<float> query(width);
        model.rope().Rotate(row.queries.data() + head * width, width, position, query.data());
        const int kv_head = static_cast<int>(head / (config.n_head / config.n_kv_heads));
        double sum = 0, largest_error = 0;
        for (int slot = 0; slot <= position; ++slot) {
          const auto key = RotatedKey(**segment, layer, kv_head, slot, slot);
          double dot = 0, size = 0;
          for (int i = 0; i < width; ++i) {
            dot += static_cast<double>(query[i]) * key[i];
            size += std::fabs(static_cast<double>(query[i]) * key[i]);
          }
          sum += std::exp(dot / std::sqrt(width));
          // A rotated key is stored as halves.
          largest_error = std::max(largest_error, size / std::sqrt(width) * 0x1p-11);
        }
        EXPECT_NEAR(row.log_sum_exp[head], std::log(sum), largest_error + 1e-5)
            << "layer " << layer << " position " << position << " head " << head;
      }
    }
  }
}

TEST(QueryCapture, BatchChunksAndStepsGivenUpDoNotChangeABit) {
  Harness alone({});
  GenerateRequest first = alone.Request(alone.NewSequence(), Ids(2, 200), 0, 0);
  const auto expected = Observe(first);
  alone.Run(alone.Submit(std::move(first)));

  Harness h({.step_rows_max = 48, .prefill_chunk = 17, .background_chunk = 33});
  GenerateRequest request = h.Request(h.NewSequence(), Ids(2, 200), 0, 0);
  request.priority = Priority::kBackground;
  const auto seen = Observe(request);
  GenerateRequest other = h.Request(h.NewSequence(), Ids(3, 90), 0, 0);
  other.priority = Priority::kBackground;
  const auto seen_other = Observe(other);
  const Job job = h.Submit(std::move(request)), job_other = h.Submit(std::move(other));
  h.engine().Step();
  h.Run(h.Submit(Ids(4, 60), 5, 1));  // a chat turn comes in between
  h.Run(job);
  h.Run(job_other);
  EXPECT_EQ(seen->captured, expected->captured);
  const auto& config = TinyRuntime::Get().model->config();
  EXPECT_EQ(seen_other->captured.size(), static_cast<size_t>(90 * config.n_layer));
}

}  // namespace
}  // namespace kvasir::runtime

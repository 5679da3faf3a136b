// Method: queries captured while requests run, against keys cut from the same sequence, both
// rotated here. Goal: a row's log-sum-exp is that of its own scores over every key it saw; and
// queries are the same bits whatever the chunk, what else runs, and how many steps were given up.
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <map>

#include "engine/gguf/float16.h"
#include "engine/runtime/state_builder.h"
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

// The cues of a capture run behind mounts; here the same tokens run in one sequence.
TEST(StateCapture, HasTheRowsOfComputingBaseStateAndCueTogether) {
  Harness h({});
  h.engine().Start();
  const Prompt& prompt = *TinyRuntime::Get().prompt;
  RuntimeStateBuilder builder(h.engine(), prompt);
  const std::atomic<bool> not_cancelled = false;
  const kv::BuilderSession session{.date = "2026-12-01",
                                   .turns = {{1, "My boat is called Vega.", "Noted.", {}}}};
  const auto state = builder.Build(session, not_cancelled);
  ASSERT_TRUE(state.ok()) << state.status();
  const std::vector<kv::CueText> cues = {{"What did I tell you about Vega?", "You told me: boat"},
                                         {"And about the boat?", "Vega"}};
  const auto capture = builder.Capture(*state, cues, not_cancelled);
  ASSERT_TRUE(capture.ok()) << capture.status();

  const model::Model& model = *TinyRuntime::Get().model;
  const int64_t heads = model.config().n_head, width = model.config().key_length;
  std::vector<kv::TurnRange> turns;
  const std::vector<int32_t> told = builder.Render(session, turns);
  ASSERT_EQ(capture->cue_first_row.size(), 2u);
  int64_t rows = 0;
  for (size_t cue = 0; cue < cues.size(); ++cue) {
    EXPECT_EQ(capture->cue_first_row[cue], rows);
    std::vector<int32_t> ids(prompt.base().begin(), prompt.base().end());
    ids.insert(ids.end(), told.begin(), told.end());
    const auto begin = static_cast<int64_t>(ids.size());
    for (const auto& piece :
         {prompt.UserTurn(cues[cue].question), prompt.TextTokens(cues[cue].answer)}) {
      ids.insert(ids.end(), piece.begin(), piece.end());
    }
    GenerateRequest request = h.Request(h.NewSequence(), ids, 0, 0);
    const auto seen = Observe(request);
    std::promise<void> done;
    std::static_pointer_cast<Recorder>(request.sink)->on_finish = [&] { done.set_value(); };
    h.Submit(std::move(request));
    done.get_future().wait();
    for (int layer = 0; layer < model.config().n_layer; ++layer) {
      const kv::LayerCapture& of_layer = capture->layers[layer];
      for (int64_t position = begin; position < std::ssize(ids); ++position) {
        const Captured::Row& row = seen->captured.at({layer, position});
        const int64_t at = rows + position - begin;
        for (int64_t head = 0; head < heads; ++head) {
          std::vector<float> query(width);
          model.rope().Rotate(row.queries.data() + head * width, static_cast<int>(width), position,
                              query.data());
          EXPECT_TRUE(std::equal(query.begin(), query.end(),
                                 of_layer.queries.begin() + (at * heads + head) * width));
          EXPECT_EQ(of_layer.log_sum_exp[at * heads + head], row.log_sum_exp[head]);
        }
      }
    }
    rows += std::ssize(ids) - begin;
  }
  EXPECT_EQ(capture->rows, rows);
  EXPECT_EQ(capture->slots, (*state)->logical_tokens());
  for (int layer = 0; layer < model.config().n_layer; ++layer) {
    EXPECT_EQ(capture->layers[layer].keys[0], [&] {
      std::vector<float> keys;
      for (int slot = 0; slot < (*state)->logical_tokens(); ++slot) {
        const auto key = RotatedKey(**state, layer, 0, slot, builder.base_tokens() + slot);
        keys.insert(keys.end(), key.begin(), key.end());
      }
      return keys;
    }());
  }
  h.engine().Shutdown(0);
}

TEST(StateCapture, SaysWhatItCannotTake) {
  Harness h({});
  h.engine().Start();
  RuntimeStateBuilder builder(h.engine(), *TinyRuntime::Get().prompt);
  const std::atomic<bool> not_cancelled = false, cancelled = true;
  const auto state = builder.Build({.date = "", .turns = {{1, "Hello", "Hi", {}}}}, not_cancelled);
  ASSERT_TRUE(state.ok());
  const std::vector<kv::CueText> cue = {{"What?", "That"}};
  EXPECT_TRUE(absl::IsInvalidArgument(builder.Capture(*state, {}, not_cancelled).status()));
  const auto base = builder.Base(not_cancelled);
  EXPECT_TRUE(absl::IsInvalidArgument(builder.Capture(*base, cue, not_cancelled).status()));
  EXPECT_TRUE(absl::IsCancelled(builder.Capture(*state, cue, cancelled).status()));
  const std::vector<kv::CueText> endless = {{std::string(100000, 'x'), ""}};
  EXPECT_EQ(base::Reason(builder.Capture(*state, endless, not_cancelled).status()),
            "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_TRUE(builder.Capture(*state, cue, not_cancelled).ok());
  h.engine().Shutdown(0);
}

}  // namespace
}  // namespace kvasir::runtime

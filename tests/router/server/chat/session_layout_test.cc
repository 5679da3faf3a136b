// SessionLayout and PartRanges over turns of every kind; goal: positions follow from the records
// alone, and parts cover what is new exactly once.
#include "router/server/session_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/gguf/file.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "router/server/settle.h"
#include "tests/support/tiny_model.h"

namespace kvasir::server {
namespace {

using service::MemoryMode;
using service::TurnRecord;

class SessionLayoutTest : public ::testing::Test {
 protected:
  SessionLayoutTest() {
    static const testing::TinyModelFile model({});
    file_ = *gguf::File::Open(model.path());
    tokenizer_ = *tokenizer::Tokenizer::Create(*file_);
    chat_ = *tokenizer::ChatTemplate::Create(*file_, tokenizer_.get());
    prompt_ = *runtime::Prompt::Create(tokenizer_.get(), &*chat_);
  }

  TurnRecord Turn(int64_t number, MemoryMode mode = MemoryMode::kReadWrite) const {
    TurnRecord turn;
    turn.number = number;
    turn.mode = mode;
    turn.state = TurnRecord::State::kDone;
    turn.finish_reason = "LENGTH";
    turn.prompt_ids = prompt_->UserTurn("message");
    turn.reply_ids = {10, 11, 12};
    return turn;
  }
  int64_t Tokens(const TurnRecord& turn) const {
    return static_cast<int64_t>(turn.prompt_ids.size() + prompt_->Reply(turn.reply_ids).size());
  }

  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  std::optional<tokenizer::ChatTemplate> chat_;
  std::optional<runtime::Prompt> prompt_;
};

TEST_F(SessionLayoutTest, TurnsFollowEachOtherAndThoseWithoutContentAreLeftOut) {
  std::vector<TurnRecord> history = {Turn(1), Turn(2), Turn(3), Turn(4), Turn(5, MemoryMode::kOff)};
  history[1].state = TurnRecord::State::kFailed;
  history[2].state = TurnRecord::State::kDeleted;
  history[2].prompt_ids.clear();
  history[3].finish_reason = "CANCELLED";
  history[3].reply_ids.clear();
  const SessionLayout layout = MakeLayout(*prompt_, 100, history);
  ASSERT_EQ(layout.turns.size(), 3u);
  EXPECT_EQ(layout.turns[0].turn, 1);
  EXPECT_EQ(layout.turns[0].begin, 100);
  EXPECT_EQ(layout.turns[0].end, 100 + Tokens(history[0]));
  EXPECT_EQ(layout.turns[1].turn, 4);
  EXPECT_EQ(layout.turns[1].begin, layout.turns[0].end);
  EXPECT_TRUE(layout.turns[1].reads);
  EXPECT_FALSE(layout.turns[2].reads);
  EXPECT_EQ(layout.end(), layout.turns[2].end);
  EXPECT_EQ(layout.ids.size(),
            static_cast<size_t>(Tokens(history[0]) + Tokens(history[3]) + Tokens(history[4])));
}

TEST_F(SessionLayoutTest, ATurnAttendsToMountsThatWereThereAndAreNotDeleted) {
  std::vector<service::MountEntry> mounts(3);
  mounts[0] = {.memory = {}, .parts = {}, .begin = 50, .tokens = 10, .turn = 2};
  mounts[1] = {.memory = {}, .parts = {}, .begin = 20, .tokens = 10, .turn = 1};
  mounts[2] = {.memory = {}, .parts = {}, .begin = 30, .tokens = 10, .turn = 1, .deleted = true};
  EXPECT_THAT(MountsOf(mounts, 1, true), ::testing::ElementsAre(1u));
  EXPECT_THAT(MountsOf(mounts, 2, true), ::testing::ElementsAre(1u, 0u));
  EXPECT_TRUE(MountsOf(mounts, 2, false).empty());
}

TEST_F(SessionLayoutTest, PartsCoverTheRangeOnceAndNameTheTurnsInThem) {
  std::vector<TurnRecord> history;
  for (int i = 1; i <= 40; ++i) history.push_back(Turn(i));
  const SessionLayout layout = MakeLayout(*prompt_, 64, history);
  for (const int64_t begin : {int64_t{64}, int64_t{65}, layout.end() - 1}) {
    int64_t at = begin;
    int64_t in_turns = 0;
    for (const PartRange& part : PartRanges(layout, begin, layout.end())) {
      EXPECT_EQ(part.begin, at);
      EXPECT_GT(part.end, part.begin);
      EXPECT_LE(part.end - part.begin, kPartTokens);
      at = part.end;
      for (const kv::TurnRange& turn : part.turns) in_turns += turn.end - turn.begin;
    }
    EXPECT_EQ(at, layout.end());
    EXPECT_EQ(in_turns, layout.end() - begin);
  }
  EXPECT_TRUE(PartRanges(layout, layout.end(), layout.end()).empty());
}

}  // namespace
}  // namespace kvasir::server

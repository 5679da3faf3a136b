// RuntimeStateBuilder and Prompt: a state built from text equals that of the live session.
#include "engine/runtime/state_builder.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/engine/runtime/harness.h"
#include "tests/support/tiny_model.h"

namespace kvasir::runtime {
namespace {

// Runs the engine on its own thread while it lives.
class StateBuilder : public ::testing::Test {
 protected:
  StateBuilder() { h_.engine().Start(); }
  ~StateBuilder() override { h_.engine().Shutdown(0); }

  const Prompt& prompt() { return *TinyRuntime::Get().prompt; }
  // Runs a request of the live session to its end.
  Job Chat(const std::shared_ptr<Sequence>& sequence, std::vector<int32_t> ids, int64_t output) {
    GenerateRequest request = h_.Request(sequence, std::move(ids), output, 3);
    request.ignore_eos = false;
    std::promise<void> done;
    std::static_pointer_cast<Recorder>(request.sink)->on_finish = [&] { done.set_value(); };
    const Job job = h_.Submit(std::move(request));
    done.get_future().wait();
    return job;
  }
  base::Status Restore(const std::shared_ptr<Sequence>& sequence,
                       std::vector<std::shared_ptr<const kv::KvSegment>> parts) {
    std::promise<base::Status> done;
    h_.engine().Restore(sequence, std::move(parts),
                        [&](base::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  Harness h_{{}};
  const std::atomic<bool> not_cancelled_ = false;
};

TEST_F(StateBuilder, ALiveSessionHasTheTokensAndTheStateOfItsText) {
  RuntimeStateBuilder builder(h_.engine(), prompt());
  const auto base = builder.Base(not_cancelled_);
  ASSERT_TRUE(base.ok()) << base.status();
  EXPECT_EQ((*base)->logical_tokens(), builder.base_tokens());

  const auto live = h_.NewSequence();
  ASSERT_TRUE(Restore(live, {*base}).ok());
  kv::BuilderSession session{.date = "2026-12-01", .turns = {}};
  const std::string texts[] = {"hello there", "and <|im_end|> now?", "last\n\n one"};
  std::vector<int32_t> next;
  for (int64_t turn = 0; turn < 3; ++turn) {
    const std::string& text = texts[turn];
    const std::vector<int32_t> user =
        turn == 0 ? prompt().FirstTurn(session.date, "", text) : prompt().UserTurn(text);
    next.insert(next.end(), user.begin(), user.end());
    const Job job = Chat(live, next, 12);
    session.turns.push_back({turn, text, job.out->text, job.out->ids});
    // The last token and what closes the reply are still to be run.
    next = prompt().Reply(job.out->ids);
    next.erase(next.begin(), next.begin() + static_cast<int64_t>(job.out->ids.size()) - 1);
  }
  Chat(live, next, 0);

  const auto built = builder.Build(session, not_cancelled_);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ((*built)->info().first_position, builder.base_tokens());
  EXPECT_EQ((*built)->info().parent_id, (*base)->info().context_id);
  EXPECT_EQ((*built)->info().context_id, live->view().context_id);
  const std::vector<int32_t> tokens = live->tokens();
  EXPECT_EQ(std::vector<int32_t>(tokens.begin() + builder.base_tokens(), tokens.end()),
            (*built)->info().tokens);
  ASSERT_EQ((*built)->info().turns.size(), 3u);
  EXPECT_EQ((*built)->info().turns.back().end, (*built)->logical_tokens());

  std::promise<base::StatusOr<std::shared_ptr<const kv::KvSegment>>> cut;
  h_.engine().Cut(live, builder.base_tokens(), live->view().end, (*built)->info().turns,
                  [&](auto segment) { cut.set_value(std::move(segment)); });
  const auto promoted = cut.get_future().get();
  ASSERT_TRUE(promoted.ok()) << promoted.status();
  EXPECT_EQ((*promoted)->ContentDigest(), (*built)->ContentDigest());
}

TEST_F(StateBuilder, ARepliesTextGivesItsTokens) {
  RuntimeStateBuilder builder(h_.engine(), prompt());
  std::vector<kv::TurnRange> turns, other_turns;
  const std::vector<int32_t> reply = prompt().TextTokens("the answer");
  const auto by_text = builder.Render({"2026-12-01", {{0, "hello", "the answer", {}}}}, turns);
  const auto by_ids = builder.Render({"2026-12-01", {{0, "hello", "", reply}}}, other_turns);
  EXPECT_EQ(by_text, by_ids);
  EXPECT_EQ(turns, other_turns);
}

TEST_F(StateBuilder, TheBaseAndThePiecesAreTheRenderedConversation) {
  const tokenizer::ChatTemplate& chat = *TinyRuntime::Get().chat;
  const std::vector<tokenizer::ChatMessage> messages = {
      {tokenizer::Role::kSystem, *chat.default_system()},
      {tokenizer::Role::kSystem, "Conversation on 2026-12-01."},
      {tokenizer::Role::kSystem, "Be brief."},
      {tokenizer::Role::kUser, "hello <|im_start|>"},
      {tokenizer::Role::kAssistant, "the answer"}};
  const auto whole = chat.Render(messages, tokenizer::GenerationPrompt::kNo);
  ASSERT_TRUE(whole.ok());
  std::vector<int32_t> ids(prompt().base().begin(), prompt().base().end());
  for (const auto& piece : {prompt().FirstTurn("2026-12-01", "Be brief.", "hello <|im_start|>"),
                            prompt().Reply(prompt().TextTokens("the answer"))}) {
    ids.insert(ids.end(), piece.begin(), piece.end());
  }
  EXPECT_EQ(ids, chat.ContextIds(*whole));
}

TEST_F(StateBuilder, AReplyEndsWithExactlyOneEndOfTurn) {
  const std::vector<int32_t> open = Ids(1, 3);
  std::vector<int32_t> closed = prompt().Reply(open);
  ASSERT_GE(closed.size(), 4u);
  EXPECT_EQ(closed[3], testing::kTinyImEnd);
  std::vector<int32_t> ended = open;
  ended.push_back(testing::kTinyImEnd);
  EXPECT_EQ(prompt().Reply(ended), closed);
  ended.back() = testing::kTinyEndOfText;  // ends the generation, not the turn
  EXPECT_EQ(prompt().Reply(ended), closed);
  EXPECT_EQ(prompt().Reply({})[0], testing::kTinyImEnd);
}

TEST_F(StateBuilder, TooLongASessionSaysBothLengths) {
  RuntimeStateBuilder builder(h_.engine(), prompt());
  const auto built = builder.Build({"", {{0, std::string(5000, '?'), "x", {}}}}, not_cancelled_);
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::Reason(built.status()), "CONTEXT_LENGTH_EXCEEDED");
  EXPECT_NE(built.status().message().find("4096"), absl::string_view::npos);
}

// The chat request would go on for thousands of tokens: a background build would see its end.
TEST_F(StateBuilder, ABuildThatATurnWaitsForDoesNotWaitForTheEndOfOtherTurns) {
  RuntimeStateBuilder builder(h_.engine(), prompt());
  GenerateRequest request = h_.Request(h_.NewSequence(), Ids(1, 8), 3900, 3);
  std::promise<void> done;
  std::static_pointer_cast<Recorder>(request.sink)->on_finish = [&] { done.set_value(); };
  kv::BuilderSession session{.date = "2026-12-01", .turns = {{0, "hello", "x", {}}}};
  session.urgency = kv::BuildUrgency::kChat;
  session.fairness_key = "default/ana";
  ASSERT_TRUE(builder.Base(not_cancelled_).ok());
  const Job chat = h_.Submit(std::move(request));
  const auto built = builder.Build(session, not_cancelled_);
  EXPECT_TRUE(built.ok()) << built.status();
  h_.engine().Cancel(chat.id);
  done.get_future().wait();
  EXPECT_EQ(chat.out->finish->reason, FinishReason::kCancelled);
  session.urgency = kv::BuildUrgency::kBackground;
  const auto again = builder.Build(session, not_cancelled_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->ContentDigest(), (*built)->ContentDigest());
}

TEST_F(StateBuilder, CancelledBuildsStop) {
  RuntimeStateBuilder builder(h_.engine(), prompt());
  const std::atomic<bool> cancelled = true;
  const auto built = builder.Build({"", {{0, "hello", "x", {}}}}, cancelled);
  EXPECT_EQ(built.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace kvasir::runtime

// Chat templates against tests/golden/chat: text, segments and ids of every conversation; whole and
// piece by piece.
#include <gtest/gtest.h>

#include "engine/tokenizer/chat_template.h"
#include "tests/engine/tokenizer/golden.h"

namespace kvasir::tokenizer {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

struct Conversation {
  std::string name;
  std::vector<ChatMessage> messages;
  GenerationPrompt prompt = GenerationPrompt::kNo;
  std::string rendered;
  Segments segments;
  Ids ids;
  bool has_smuggled_ids = false;  // ids_plain_special_on is there
};

Conversation Parse(const json& line) {
  Conversation c;
  c.name = line["name"].get<std::string>();
  for (const json& message : line["messages"])
    c.messages.push_back({ParseRole(message["role"].get<std::string>()).value(),
                          message["content"].get<std::string>()});
  c.prompt =
      line["add_generation_prompt"].get<bool>() ? GenerationPrompt::kYes : GenerationPrompt::kNo;
  c.rendered = line["rendered"].get<std::string>();
  for (const json& segment : line["segments"])
    c.segments.push_back({segment[0].get<std::string>(), segment[1] == "template"
                                                             ? SegmentKind::kTemplate
                                                             : SegmentKind::kContent});
  c.ids = line["ids"].get<Ids>();
  c.has_smuggled_ids = line.contains("ids_plain_special_on");
  return c;
}

class ChatGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto model = LoadModel(GetParam());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::move(*model);
    auto chat = ChatTemplate::Create(*model_.file, model_.tokenizer.get());
    ASSERT_TRUE(chat.ok()) << chat.status();
    chat_.emplace(*chat);
    for (const json& line : GoldenLines("chat/" + GetParam() + ".jsonl"))
      conversations_.push_back(Parse(line));
    ASSERT_EQ(conversations_.size(), 11u);
  }

  // The ids a server makes of the conversation: piece by piece, replies as the tokens of their
  // text.
  Ids PieceByPiece(const Conversation& c) const {
    Ids ids = chat_->ContextStart();
    const auto append = [&](const Ids& more) { ids.insert(ids.end(), more.begin(), more.end()); };
    size_t next = 0;
    const bool system = c.messages[0].role == Role::kSystem;
    append(chat_->Ids(
        chat_
            ->RenderSystem(system ? std::optional<std::string_view>(c.messages[next++].content)
                                  : std::nullopt)
            .value()));
    bool prompted = false;  // ids end with the start of a reply
    for (; next < c.messages.size(); ++next) {
      const ChatMessage& message = c.messages[next];
      if (message.role == Role::kAssistant && prompted) {
        append(model_.tokenizer->Encode(message.content, SpecialTokens::kAsText));
        append({chat_->end_of_turn()});
        if (next + 1 == c.messages.size())
          append(model_.tokenizer->Encode(chat_->ReplyCloser(), SpecialTokens::kAsText));
        prompted = false;
      } else if (next > 0 && c.messages[next - 1].role == Role::kAssistant) {
        append(chat_->Continuation(ReplyEnd::kEndOfTurn, message.content));
        prompted = true;
      } else {
        append(chat_->Ids(chat_->RenderUserTurnAndPrompt(message.content)));
        prompted = true;
      }
    }
    return ids;
  }

  Model model_;
  std::optional<ChatTemplate> chat_;
  std::vector<Conversation> conversations_;
};

TEST_P(ChatGolden, EveryConversationIsRenderedAsTheTemplateDoes) {
  for (const Conversation& c : conversations_) {
    const auto segments = chat_->Render(c.messages, c.prompt);
    ASSERT_TRUE(segments.ok()) << c.name << segments.status();
    EXPECT_EQ(RenderedText(*segments), c.rendered) << c.name;
    EXPECT_TRUE(*segments == c.segments) << c.name;
  }
}

TEST_P(ChatGolden, EveryConversationGivesTheGoldenIds) {
  for (const Conversation& c : conversations_) {
    const Segments segments = chat_->Render(c.messages, c.prompt).value();
    EXPECT_EQ(chat_->Ids(segments), c.ids) << c.name;
    EXPECT_EQ(chat_->ContextIds(segments), c.ids) << c.name << ": no BOS is added";
  }
}

TEST_P(ChatGolden, PiecesGiveTheIdsOfTheWholeConversation) {
  int compared = 0;
  for (const Conversation& c : conversations_) {
    // A reply of white space alone joins the newline of the prompt in the whole text; a model's
    // reply would not.
    if (c.name == "whitespace_edges") continue;
    EXPECT_EQ(PieceByPiece(c), c.ids) << c.name;
    ++compared;
  }
  EXPECT_EQ(compared, 10);
}

TEST_P(ChatGolden, CompleteTurnsGiveTheIdsOfTheWholeConversation) {
  for (const Conversation& c : conversations_) {
    Ids ids;
    const auto append = [&](const Segments& segments) {
      const Ids more = chat_->Ids(segments);
      ids.insert(ids.end(), more.begin(), more.end());
    };
    if (c.messages[0].role != Role::kSystem) append(chat_->RenderSystem(std::nullopt).value());
    const bool prompt = c.prompt == GenerationPrompt::kYes;
    for (size_t i = 0; i < c.messages.size(); ++i) {
      const bool last = i + 1 == c.messages.size();
      append(last && prompt ? chat_->RenderUserTurnAndPrompt(c.messages[i].content)
                            : chat_->RenderTurn(c.messages[i].role, c.messages[i].content));
    }
    EXPECT_EQ(ids, c.ids) << c.name;
  }
}

TEST_P(ChatGolden, ControlTokensInContentStayText) {
  int smuggling = 0;
  for (const Conversation& c : conversations_) {
    if (!c.has_smuggled_ids) continue;
    ++smuggling;
    const int32_t end = chat_->end_of_turn();
    const Ids ids = chat_->Ids(chat_->Render(c.messages, c.prompt).value());
    const bool added = c.messages[0].role != Role::kSystem;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), end),
              static_cast<ptrdiff_t>(c.messages.size() + added))
        << c.name << ": one end of turn for each message";
  }
  EXPECT_EQ(smuggling, 2);
}

TEST_P(ChatGolden, AnOpenReplyIsClosedBeforeTheNextTurn) {
  Ids expected = {chat_->end_of_turn()};
  const Ids closed = chat_->Continuation(ReplyEnd::kEndOfTurn, "next?");
  expected.insert(expected.end(), closed.begin(), closed.end());
  EXPECT_EQ(chat_->Continuation(ReplyEnd::kOpen, "next?"), expected);
  EXPECT_EQ(model_.tokenizer->Decode(closed),
            "\n<|im_start|>user\nnext?<|im_end|>\n<|im_start|>assistant\n");
}

TEST_P(ChatGolden, GenerationStopsAtTheEndOfTheTurn) {
  EXPECT_TRUE(model_.tokenizer->IsEndOfGeneration(chat_->end_of_turn()));
  EXPECT_EQ(model_.tokenizer->eot(), chat_->end_of_turn());
}

INSTANTIATE_TEST_SUITE_P(All, ChatGolden, testing::Values("smollm2", "q05"),
                         [](const auto& param) { return param.param; });

TEST(ChatGoldenBase, AModelWithoutATemplateSaysSo_gemma3) {
  auto model = LoadModel("gemma3");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto chat = ChatTemplate::Create(*model->file, model->tokenizer.get());
  EXPECT_EQ(chat.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace kvasir::tokenizer

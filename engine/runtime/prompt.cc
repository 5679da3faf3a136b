#include "engine/runtime/prompt.h"

#include <optional>

#include "engine/base/check.h"

namespace kvasir::runtime {
namespace {

// The base of a model whose chat template has no default system message.
constexpr std::string_view kNeutralSystem = "You are a helpful assistant.";

void Append(std::vector<int32_t>& to, std::span<const int32_t> from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

base::StatusOr<Prompt> Prompt::Create(const tokenizer::Tokenizer* tokenizer,
                                      const tokenizer::ChatTemplate* chat) {
  Prompt prompt(tokenizer, chat);
  std::optional<std::string_view> system;
  if (!chat->default_system()) system = kNeutralSystem;
  KVASIR_ASSIGN_OR_RETURN(const tokenizer::Segments segments, chat->RenderSystem(system));
  prompt.base_ = chat->ContextIds(segments);
  KVASIR_CHECK(!prompt.base_.empty());
  prompt.closer_ = chat->Ids(
      tokenizer::Segments{{std::string(chat->ReplyCloser()), tokenizer::SegmentKind::kTemplate}});
  return prompt;
}

std::vector<int32_t> Prompt::DateLine(std::string_view date) const {
  return SystemPrompt(fmt::format("Conversation on {}.", date));
}

std::vector<int32_t> Prompt::SystemPrompt(std::string_view text) const {
  const auto segments = chat_->RenderSystem(text);
  KVASIR_CHECK(segments.ok());  // Create would have failed
  return chat_->Ids(*segments);
}

std::vector<int32_t> Prompt::UserTurn(std::string_view text) const {
  return chat_->Ids(chat_->RenderUserTurnAndPrompt(text));
}

std::vector<int32_t> Prompt::Reply(std::span<const int32_t> sampled) const {
  std::vector<int32_t> ids(sampled.begin(), sampled.end());
  const int32_t end = chat_->end_of_turn();
  if (!ids.empty() && ids.back() != end && tokenizer_->IsEndOfGeneration(ids.back())) {
    ids.pop_back();
  }
  if (ids.empty() || ids.back() != end) ids.push_back(end);
  Append(ids, closer_);
  return ids;
}

std::vector<int32_t> Prompt::TextTokens(std::string_view text) const {
  return tokenizer_->Encode(text, tokenizer::SpecialTokens::kAsText);
}

std::vector<int32_t> Prompt::FirstTurn(std::string_view date, std::string_view system_prompt,
                                       std::string_view user_text) const {
  std::vector<int32_t> ids;
  if (!date.empty()) Append(ids, DateLine(date));
  if (!system_prompt.empty()) Append(ids, SystemPrompt(system_prompt));
  Append(ids, UserTurn(user_text));
  return ids;
}

}  // namespace kvasir::runtime

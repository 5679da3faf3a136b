// Prompt: the token ids of a conversation as the server keeps it in the state, piece by piece. Live
// sessions and states built from text use the same pieces, so that both give the same ids.
//
// Layout: [base] [mounted memories] [date line] [own system prompt] [turn]*
// A turn is the user's message, the start of the reply, the reply's tokens and what closes it.
// Threads: immutable; concurrent calls allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::runtime {

class Prompt {
 public:
  // Both must outlive the result.
  // Errors: Unimplemented (the model's chat template has no system message).
  static base::StatusOr<Prompt> Create(const tokenizer::Tokenizer* tokenizer,
                                       const tokenizer::ChatTemplate* chat);

  // The canonical base: what every context starts with and the default system message (a neutral
  // one where the template has none). Never empty. It stands at position 0.
  std::span<const int32_t> base() const { return base_; }
  // "Conversation on 2026-12-01." as a system turn.
  std::vector<int32_t> DateLine(std::string_view date) const;
  // A session's own system prompt.
  std::vector<int32_t> SystemPrompt(std::string_view text) const;
  // A user's message and the start of the reply.
  std::vector<int32_t> UserTurn(std::string_view text) const;
  // A reply as it stands in the state: `sampled` (all tokens the model gave, the last one too) and
  // what closes it. An end-of-generation token that does not end turns in this family is left out.
  std::vector<int32_t> Reply(std::span<const int32_t> sampled) const;
  // The tokens of a reply given as text.
  std::vector<int32_t> TextTokens(std::string_view text) const;

  // DateLine (when `date` is not empty), SystemPrompt (when not empty), UserTurn: what follows base
  // and memories in a session's first request.
  std::vector<int32_t> FirstTurn(std::string_view date, std::string_view system_prompt,
                                 std::string_view user_text) const;

 private:
  Prompt(const tokenizer::Tokenizer* tokenizer, const tokenizer::ChatTemplate* chat)
      : tokenizer_(tokenizer), chat_(chat) {}

  const tokenizer::Tokenizer* tokenizer_;
  const tokenizer::ChatTemplate* chat_;
  std::vector<int32_t> base_;
  std::vector<int32_t> closer_;  // what the template writes behind the end of a reply
};

}  // namespace kvasir::runtime

// ReplyText: the text of a reply, token by token: incomplete UTF-8, stop strings and control tokens
// do not show.
//
// Threads: a value; one thread at a time. Copying clones it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/runtime/stop_matcher.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::runtime {

class ReplyText {
 public:
  // `tokenizer` must outlive it.
  ReplyText(const tokenizer::Tokenizer* tokenizer, StopMatcher stops)
      : tokenizer_(tokenizer), detokenizer_(tokenizer), stops_(std::move(stops)) {}

  // Adds a token and returns the text that became certain. REQUIRES: a valid id, not stopped().
  std::string Push(int32_t id) {
    if (tokenizer_->IsControl(id)) return stops_.Push(detokenizer_.Flush());
    return stops_.Push(detokenizer_.Push(id));
  }
  // Ends the reply: what was held back, unless it ended with a stop string.
  std::string Flush() {
    std::string text = stops_.Push(detokenizer_.Flush());
    return text + stops_.Flush();
  }
  // Whether a stop string is complete.
  bool stopped() const { return stops_.stopped(); }

 private:
  const tokenizer::Tokenizer* tokenizer_;
  tokenizer::Detokenizer detokenizer_;
  StopMatcher stops_;
};

}  // namespace kvasir::runtime

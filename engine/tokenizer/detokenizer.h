// Detokenizer: the text of a stream of token ids, given out in pieces of valid UTF-8. Tokens end
// anywhere, also inside a character: an incomplete sequence is held back until it is complete.
// Every maximal ill-formed part becomes one U+FFFD (Unicode 15, section 3.9, "substitution of
// maximal subparts").
//
// All pieces of a stream and its Flush together are SanitizeUtf8(Tokenizer::Decode(ids)).
// Threads: a value; one thread at a time. Copying clones the stream (rollback of speculation).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/tokenizer/tokenizer.h"

namespace kvasir::tokenizer {

class Detokenizer {
 public:
  // `tokenizer` must outlive the stream.
  explicit Detokenizer(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  // Adds one token and returns the text that became certain, maybe empty. REQUIRES: IsValid(id).
  std::string Push(int32_t id);
  // Ends the stream: a held-back sequence will not be completed and becomes U+FFFD. The stream then
  // starts anew.
  std::string Flush();
  // Bytes held back now, at most 3.
  std::string_view pending() const { return pending_; }

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
  bool at_start_ = true;  // no token yet, or the last one was special
};

// `bytes` with every maximal ill-formed part replaced by U+FFFD.
std::string SanitizeUtf8(std::string_view bytes);

}  // namespace kvasir::tokenizer

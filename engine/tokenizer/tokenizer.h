// Tokenizer: text to token ids and back, as the model was trained. Byte-level BPE (pre-tokenizers
// gpt-2, smollm, llama-bpe, qwen2) and SentencePiece BPE. Text is never normalised (no NFC), and
// bytes outside well-formed UTF-8 become byte tokens.
//
// Threads: immutable after Create; concurrent calls allowed. Time of every call: O(n log n) in the
// bytes of the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// What the spelling of a control token ("<|im_end|>") in a text means.
enum class SpecialTokens {
  kAsText,  // ordinary characters: everything that users, tools and documents wrote
  kParse,   // the control token: only for text of our own, such as a chat template
};

struct TextPart {
  std::string_view text;
  SpecialTokens special = SpecialTokens::kAsText;
};

class Tokenizer {
 public:
  // Works for vocabulary-only files. Keeps no reference to `file`.
  // Errors: those of ReadVocabulary and of the other Create.
  static base::StatusOr<std::unique_ptr<Tokenizer>> Create(const gguf::File& file);
  // Errors: InvalidArgument naming the key and the entry: no tokens or more than kTokensMax; sizes
  // that differ; a text longer
  //         than kTokenBytesMax or given to two tokens; scores that are not finite; byte tokens
  //         that are not "<0x00>" to
  //         "<0xFF>"; ids outside the vocabulary; add_bos without bos; merges that do not join two
  //         tokens to a third, that repeat, or that make a control or unknown token.
  static base::StatusOr<std::unique_ptr<Tokenizer>> Create(Vocabulary vocabulary);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The ids of `text`; neither BOS nor EOS is added. User-defined tokens are recognised always,
  // control and unknown tokens with kParse; leftmost first, then longest; control before
  // user-defined. A byte the vocabulary has no token for becomes the unknown token (SentencePiece),
  // or is dropped (byte-level; SmolLM2 lacks 21 byte values).
  std::vector<int32_t> Encode(std::string_view text, SpecialTokens special) const;

  // The ids of the parts put together. Control tokens are recognised only where they lie wholly
  // inside one kParse part; what lies between two of them is encoded as one run, across parts.
  std::vector<int32_t> EncodeParts(std::span<const TextPart> parts) const;

  // The bytes `id` stands for: special tokens as their text, unused ones empty. Valid as long as
  // the tokenizer. REQUIRES: IsValid(id).
  std::string_view TokenBytes(int32_t id) const;

  // The bytes of all ids. Where adds_space_prefix(), one leading space of the first token, and of
  // the first after each special token, is left out: Decode(Encode(text)) == text. (Exceptions:
  // U+2581 comes back as a space from SentencePiece; dropped bytes do not come back.) REQUIRES:
  // IsValid of each id.
  std::string Decode(std::span<const int32_t> ids) const;

  int32_t n_vocab() const;
  bool IsValid(int32_t id) const { return id >= 0 && id < n_vocab(); }
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  // The token that ends one chat turn, as the file names it or found by its text ("<|im_end|>",
  // "<|eot_id|>", ...).
  std::optional<int32_t> eot() const;
  // Whether every context starts with bos().
  bool add_bos() const;
  bool adds_space_prefix() const;

  // Whether generation stops at `id`: eos, eot, and control tokens that end a turn or text in a
  // known family.
  bool IsEndOfGeneration(int32_t id) const;
  // Control or unknown token. REQUIRES: IsValid(id), as the next.
  bool IsControl(int32_t id) const;
  // Control, unknown or user-defined token.
  bool IsSpecial(int32_t id) const;
  // The control token spelled `text`, if there is one.
  std::optional<int32_t> FindControl(std::string_view text) const;

  // Identity of the mapping: digest over vocabulary, types, scores, merges, pre-tokenizer, special
  // ids.
  const base::Digest& digest() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace kvasir::tokenizer

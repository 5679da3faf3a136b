// Fuzz target of engine/tokenizer. The first byte picks a tokenizer and whether special tokens are
// parsed; the rest is the text. Held for every input: the text comes back, text alone makes no
// control token, a stream gives the text of the whole, and a template that is nonsense is refused
// or reduced without harm.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/jinja_form.h"
#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

constexpr std::string_view kSpace = "\u2581";

void AddSpecialTokens(Vocabulary& v) {
  AddToken(v, "<|im_start|>", TokenType::kControl);
  AddToken(v, "<|im_end|>", TokenType::kControl);
  AddToken(v, "\n\n", TokenType::kUserDefined);
  AddToken(v, "<tool>", TokenType::kUserDefined);
}

std::unique_ptr<Tokenizer> ByteLevel(PreTokenizer pre) {
  Vocabulary v = ByteLevelVocabulary(pre);
  const std::string space = "\u0120", newline = "\u010A";  // in the byte alphabet
  for (const auto& [left, right] :
       std::initializer_list<std::pair<std::string, std::string>>{{"a", "a"},
                                                                  {"aa", "aa"},
                                                                  {"aaaa", "a"},
                                                                  {"a", "b"},
                                                                  {"ab", "ab"},
                                                                  {space, "a"},
                                                                  {space, space},
                                                                  {newline, newline},
                                                                  {"i", "m"},
                                                                  {"<", "|"},
                                                                  {"<|", "im"}})
    AddMerge(v, left, right);
  AddSpecialTokens(v);
  return MakeTokenizer(std::move(v));
}

std::unique_ptr<Tokenizer> SentencePiece(bool add_space_prefix) {
  const std::string space(kSpace);
  Vocabulary v =
      SentencePieceVocabulary({space + "a", "aa", "ab", "aaaa", space + space, "im", "<|", "<|im",
                               space, "a", "b", "<", "|", "i", "m", "\n", "\u00E9"});
  v.add_space_prefix = add_space_prefix;
  AddSpecialTokens(v);
  return MakeTokenizer(std::move(v));
}

// What Decode gives back for `text`: SentencePiece cannot tell U+2581 from a space.
std::string Expected(std::string_view text, bool sentencepiece) {
  std::string expected;
  while (!text.empty()) {
    const bool space = sentencepiece && text.starts_with(kSpace);
    expected += space ? ' ' : text[0];
    text.remove_prefix(space ? kSpace.size() : 1);
  }
  return expected;
}

void CheckText(const Tokenizer& tokenizer, std::string_view text, SpecialTokens special,
               bool sentencepiece) {
  const std::vector<int32_t> ids = tokenizer.Encode(text, special);
  const std::string decoded = tokenizer.Decode(ids);
  KVASIR_CHECK(decoded == Expected(text, sentencepiece));
  KVASIR_CHECK(
      special == SpecialTokens::kParse ||
      std::none_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer.IsControl(id); }));
  Detokenizer stream(&tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    const std::string piece = stream.Push(id);
    KVASIR_CHECK(SanitizeUtf8(piece) == piece && stream.pending().size() <= 3);
    streamed += piece;
  }
  streamed += stream.Flush();
  KVASIR_CHECK(streamed == SanitizeUtf8(decoded));
}

// `data` is not empty.
void CheckInput(std::string_view data) {
  static const std::array<std::unique_ptr<Tokenizer>, 6> kTokenizers = {
      ByteLevel(PreTokenizer::kGpt2),
      ByteLevel(PreTokenizer::kSmolLm),
      ByteLevel(PreTokenizer::kQwen2),
      ByteLevel(PreTokenizer::kLlamaBpe),
      SentencePiece(false),
      SentencePiece(true)};
  const auto choice = static_cast<uint8_t>(data[0]);
  const std::string_view text = data.substr(1);
  const size_t which = choice % kTokenizers.size();
  const auto special = choice & 0x80 ? SpecialTokens::kParse : SpecialTokens::kAsText;
  CheckText(*kTokenizers[which], text, special, which >= 4);
  static_cast<void>(FormOf(text));  // must return, whatever the template
}

}  // namespace
}  // namespace kvasir::tokenizer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) kvasir::tokenizer::CheckInput({reinterpret_cast<const char*>(data), size});
  return 0;
}

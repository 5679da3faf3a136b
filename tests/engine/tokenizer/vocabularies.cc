#include "tests/engine/tokenizer/vocabularies.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace kvasir::tokenizer {
namespace {

// UTF-8 of a code point below U+0800.
std::string Utf8(int value) {
  if (value < 0x80) return std::string(1, static_cast<char>(value));
  return {static_cast<char>(0xC0 | value >> 6), static_cast<char>(0x80 | (value & 0x3F))};
}

}  // namespace

Vocabulary ByteLevelVocabulary(PreTokenizer pre) {
  Vocabulary v;
  v.algorithm = Algorithm::kByteLevelBpe;
  v.pre = pre;
  int other = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    AddToken(v, Utf8(itself ? byte : other++), TokenType::kNormal);
  }
  return v;
}

Vocabulary SentencePieceVocabulary(const std::vector<std::string>& pieces) {
  Vocabulary v;
  v.algorithm = Algorithm::kSentencePieceBpe;
  v.unknown = AddToken(v, "<unk>", TokenType::kUnknown);
  v.bos = AddToken(v, "<s>", TokenType::kControl);
  v.eos = AddToken(v, "</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte)
    AddToken(v, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  float score = 0;
  for (const std::string& piece : pieces) AddToken(v, piece, TokenType::kNormal, score -= 1);
  return v;
}

int32_t AddToken(Vocabulary& v, std::string text, TokenType type, float score) {
  v.texts.push_back(std::move(text));
  v.types.push_back(type);
  if (v.algorithm == Algorithm::kSentencePieceBpe) v.scores.push_back(score);
  return static_cast<int32_t>(v.texts.size() - 1);
}

int32_t AddMerge(Vocabulary& v, const std::string& left, const std::string& right) {
  v.merges.push_back(left + " " + right);
  const auto found = std::find(v.texts.begin(), v.texts.end(), left + right);
  if (found != v.texts.end()) return static_cast<int32_t>(found - v.texts.begin());
  return AddToken(v, left + right, TokenType::kNormal);
}

std::unique_ptr<Tokenizer> MakeTokenizer(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::Create(std::move(vocabulary));
  KVASIR_CHECK(tokenizer.ok());
  return std::move(*tokenizer);
}

std::unique_ptr<Tokenizer> MakeChatMlTokenizer() {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kQwen2);
  AddToken(v, "<|im_start|>", TokenType::kControl);
  AddToken(v, "<|im_end|>", TokenType::kControl);
  return MakeTokenizer(std::move(v));
}

}  // namespace kvasir::tokenizer

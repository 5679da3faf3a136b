// SentencePiece BPE over a vocabulary made by hand.
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using Ids = std::vector<int32_t>;
constexpr int32_t kFirstByte = 3;
constexpr int32_t kFirstPiece = 259;

TEST(SentencePieceBpe, TheBetterScoreMergesFirst) {
  Vocabulary v = SentencePieceVocabulary({"bc", "ab", "a", "b", "c"});
  EXPECT_EQ(MakeTokenizer(v)->Encode("abc", SpecialTokens::kAsText),
            (Ids{kFirstPiece + 2, kFirstPiece}));
}

TEST(SentencePieceBpe, SpacesAreLowerOneEighthBlocks) {
  Vocabulary v = SentencePieceVocabulary({"\u2581a", "a", "\u2581"});
  const auto tokenizer = MakeTokenizer(v);
  const Ids ids = tokenizer->Encode("a a", SpecialTokens::kAsText);
  EXPECT_EQ(ids, (Ids{kFirstPiece + 1, kFirstPiece}));
  EXPECT_EQ(tokenizer->Decode(ids), "a a");
}

TEST(SentencePieceBpe, ACharacterThatIsNoPieceBecomesItsBytes) {
  const auto tokenizer = MakeTokenizer(SentencePieceVocabulary({"a"}));
  const Ids ids = tokenizer->Encode("a\u00E9\xFF", SpecialTokens::kAsText);
  EXPECT_EQ(ids, (Ids{kFirstPiece, kFirstByte + 0xC3, kFirstByte + 0xA9, kFirstByte + 0xFF}));
  EXPECT_EQ(tokenizer->Decode(ids), "a\u00E9\xFF");
}

TEST(SentencePieceBpe, WithoutByteTokensACharacterBecomesUnknown) {
  Vocabulary v = SentencePieceVocabulary({"a"});
  v.types[static_cast<size_t>(kFirstByte) + 0xC3] = TokenType::kUnused;
  EXPECT_EQ(MakeTokenizer(v)->Encode("\u00E9", SpecialTokens::kAsText), (Ids{*v.unknown}));
}

TEST(SentencePieceBpe, TheSpellingOfAByteTokenIsText) {
  const auto tokenizer = MakeTokenizer(SentencePieceVocabulary({"<", "0", "x", "4", "1", ">"}));
  EXPECT_EQ(tokenizer->Encode("<0x41>", SpecialTokens::kParse).size(), 6u);
}

TEST(SentencePieceBpe, MergingNeverMakesAControlToken) {
  Vocabulary v = SentencePieceVocabulary({"<s", "s>", "<", "s", ">"});
  EXPECT_EQ(MakeTokenizer(v)->Encode("<s>", SpecialTokens::kAsText),
            (Ids{kFirstPiece, kFirstPiece + 4}));
}

TEST(SentencePieceBpe, ASpaceIsPutBeforeTextAndLeftOutAgain) {
  Vocabulary v = SentencePieceVocabulary({"\u2581a", "a", "\u2581"});
  v.add_space_prefix = true;
  const auto tokenizer = MakeTokenizer(v);
  EXPECT_EQ(tokenizer->Encode("a", SpecialTokens::kAsText), (Ids{kFirstPiece}));
  EXPECT_EQ(tokenizer->Encode("", SpecialTokens::kAsText), Ids{});
  for (const std::string text : {"a", " a", "  ", "a a", "<s>a", "<s> a</s>a"})
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text, SpecialTokens::kParse)), text);
}

}  // namespace
}  // namespace kvasir::tokenizer

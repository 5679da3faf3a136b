// Byte-level BPE over a vocabulary made by hand.
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

TEST(ByteLevelBpe, MergesByRankNotByPosition) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  const int32_t bc = AddMerge(v, "b", "c");
  AddMerge(v, "a", "b");
  EXPECT_EQ(MakeTokenizer(v)->Encode("abc", SpecialTokens::kAsText), (Ids{'a', bc}));
}

TEST(ByteLevelBpe, EqualPairsMergeFromTheLeft) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  const int32_t aa = AddMerge(v, "a", "a");
  EXPECT_EQ(MakeTokenizer(v)->Encode("aaaaa", SpecialTokens::kAsText), (Ids{aa, aa, 'a'}));
}

TEST(ByteLevelBpe, APairThatChangedBeforeItsTurnIsNotMerged) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  const int32_t bc = AddMerge(v, "b", "c");
  AddMerge(v, "c", "d");
  const int32_t bcd = AddMerge(v, "bc", "d");
  EXPECT_EQ(MakeTokenizer(v)->Encode("bcd bc", SpecialTokens::kAsText), (Ids{bcd, ' ', bc}));
}

TEST(ByteLevelBpe, ThePreTokenizerBoundsEveryMerge) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  AddMerge(v, "a", "!");
  EXPECT_EQ(MakeTokenizer(v)->Encode("a!", SpecialTokens::kAsText), (Ids{'a', '!'}));
}

TEST(ByteLevelBpe, LlamaTakesAWholePieceThatNoMergeLeadsTo) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kLlamaBpe);
  const int32_t word = AddToken(v, "\u0120xyz", TokenType::kNormal);  // " xyz"
  EXPECT_EQ(MakeTokenizer(v)->Encode(" xyz xy", SpecialTokens::kAsText),
            (Ids{word, ' ', 'x', 'y'}));
  v.pre = PreTokenizer::kQwen2;
  EXPECT_EQ(MakeTokenizer(v)->Encode(" xyz", SpecialTokens::kAsText), (Ids{' ', 'x', 'y', 'z'}));
}

TEST(ByteLevelBpe, EveryByteGoesThereAndBack) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  for (const auto pre : {PreTokenizer::kGpt2, PreTokenizer::kSmolLm, PreTokenizer::kLlamaBpe,
                         PreTokenizer::kQwen2}) {
    const auto tokenizer = MakeTokenizer(ByteLevelVocabulary(pre));
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(bytes, SpecialTokens::kAsText)), bytes);
  }
}

TEST(ByteLevelBpe, AByteWithoutATokenIsDropped) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  v.types[0xFF] = TokenType::kUnused;
  EXPECT_EQ(MakeTokenizer(v)->Encode("a\xFF"
                                     "b",
                                     SpecialTokens::kAsText),
            (Ids{'a', 'b'}));
}

TEST(ByteLevelBpe, UnusedTokensStandForNoText) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  const int32_t pad = AddToken(v, "[PAD1]", TokenType::kUnused);
  const auto tokenizer = MakeTokenizer(v);
  EXPECT_EQ(tokenizer->TokenBytes(pad), "");
  EXPECT_EQ(tokenizer->Encode("[PAD1]", SpecialTokens::kParse).size(), 6u);
}

}  // namespace
}  // namespace kvasir::tokenizer

// The pieces of each pre-tokenizer, against the regular expressions it stands for, worked out by
// hand.
#include "engine/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::tokenizer {
namespace {

using Pieces = std::vector<std::string>;

Pieces Split(PreTokenizer pre, std::string_view text) {
  std::vector<size_t> ends;
  SplitPieces(pre, text, ends);
  Pieces pieces;
  size_t begin = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size()) << "the pieces cover the text";
  return pieces;
}

TEST(PreTokenizer, Gpt2KeepsOneSpaceWithTheWordThatFollows) {
  EXPECT_EQ(Split(PreTokenizer::kGpt2, "Hello  world 42!"),
            (Pieces{"Hello", " ", " world", " 42", "!"}));
}

TEST(PreTokenizer, Gpt2CutsLowerCaseContractionsOnly) {
  EXPECT_EQ(Split(PreTokenizer::kGpt2, "I'll I'LL"), (Pieces{"I", "'ll", " I", "'", "LL"}));
}

TEST(PreTokenizer, Gpt2LeavesTheLastOfSeveralNewlinesToItself) {
  EXPECT_EQ(Split(PreTokenizer::kGpt2, "a\n\n\nb\n"), (Pieces{"a", "\n\n", "\n", "b", "\n"}));
}

TEST(PreTokenizer, SmolLmMakesEveryDigitAPieceAndItsNeighboursStandAlone) {
  // GPT-2 would cut "a", " ", " 12": here the spaces end a text of their own.
  EXPECT_EQ(Split(PreTokenizer::kSmolLm, "a  12b"), (Pieces{"a", "  ", "1", "2", "b"}));
}

TEST(PreTokenizer, LlamaTakesDigitsInThreesAndQwenOneByOne) {
  EXPECT_EQ(Split(PreTokenizer::kLlamaBpe, "12345"), (Pieces{"123", "45"}));
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "123"), (Pieces{"1", "2", "3"}));
}

TEST(PreTokenizer, QwenJoinsOneSymbolToTheLettersThatFollow) {
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "(a) \tb"), (Pieces{"(a", ")", " ", "\tb"}));
}

TEST(PreTokenizer, QwenJoinsNewlinesToTheSymbolsBefore) {
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "x;\n\ny"), (Pieces{"x", ";\n\n", "y"}));
}

TEST(PreTokenizer, QwenEndsWhiteSpaceAtItsLastNewline) {
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "a \n \n  b"), (Pieces{"a", " \n \n", " ", " b"}));
}

TEST(PreTokenizer, QwenFoldsContractionsAlsoWithLongS) {
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "I'LLx'\u017Fab"),
            (Pieces{"I", "'LL", "x", "'\u017F", "ab"}));
}

TEST(PreTokenizer, AByteThatIsNoUtf8CountsAsASymbol) {
  EXPECT_EQ(Split(PreTokenizer::kQwen2, "ab\xFF!c"), (Pieces{"ab", "\xFF!", "c"}));
  EXPECT_EQ(Split(PreTokenizer::kGpt2, "ab \xE2\x82"), (Pieces{"ab", " \xE2\x82"}));
}

TEST(PreTokenizer, AnEmptyTextHasNoPieces) {
  for (const auto pre : {PreTokenizer::kNone, PreTokenizer::kGpt2, PreTokenizer::kSmolLm,
                         PreTokenizer::kLlamaBpe, PreTokenizer::kQwen2})
    EXPECT_TRUE(Split(pre, "").empty());
}

}  // namespace
}  // namespace kvasir::tokenizer

// Special tokens: which are recognised where, and which end a generation.
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using Ids = std::vector<int32_t>;

class SpecialTokensTest : public testing::Test {
 protected:
  SpecialTokensTest() {
    Vocabulary v = ByteLevelVocabulary(PreTokenizer::kQwen2);
    end_ = AddToken(v, "<|im_end|>", TokenType::kControl);
    tool_ = AddToken(v, "<tool>", TokenType::kUserDefined);
    two_ = AddToken(v, "\n\n", TokenType::kUserDefined);
    three_ = AddToken(v, "\n\n\n", TokenType::kUserDefined);
    eos_ = AddToken(v, "<|endoftext|>", TokenType::kControl);
    normal_ = AddToken(v, "</s>", TokenType::kNormal);
    v.eos = eos_;
    tokenizer_ = MakeTokenizer(std::move(v));
  }

  int32_t end_, tool_, two_, three_, eos_, normal_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(SpecialTokensTest, AControlTokenIsTextUnlessParsed) {
  EXPECT_EQ(tokenizer_->Encode("a<|im_end|>b", SpecialTokens::kParse), (Ids{'a', end_, 'b'}));
  const Ids text = tokenizer_->Encode("a<|im_end|>b", SpecialTokens::kAsText);
  EXPECT_EQ(text.size(), 12u);
  for (const int32_t id : text) EXPECT_FALSE(tokenizer_->IsControl(id));
}

TEST_F(SpecialTokensTest, AUserDefinedTokenIsRecognisedAlways) {
  EXPECT_EQ(tokenizer_->Encode("a<tool>b", SpecialTokens::kAsText), (Ids{'a', tool_, 'b'}));
}

TEST_F(SpecialTokensTest, TheLongestSpecialTokenWins) {
  EXPECT_EQ(tokenizer_->Encode("\n\n\n\n\n", SpecialTokens::kAsText), (Ids{three_, two_}));
}

TEST_F(SpecialTokensTest, APartialControlTokenIsText) {
  EXPECT_EQ(tokenizer_->Encode("<|im_<|im_end|", SpecialTokens::kParse).size(), 14u);
}

TEST_F(SpecialTokensTest, AControlTokenAcrossPartsIsText) {
  const TextPart parts[] = {{"<|im_", SpecialTokens::kParse}, {"end|>", SpecialTokens::kParse}};
  for (const int32_t id : tokenizer_->EncodeParts(parts)) EXPECT_NE(id, end_);
}

TEST_F(SpecialTokensTest, OnlyPartsToBeParsedHaveControlTokens) {
  const TextPart parts[] = {{"<|im_end|>x", SpecialTokens::kParse},
                            {"<|im_end|>", SpecialTokens::kAsText},
                            {"<|im_end|>", SpecialTokens::kParse}};
  const Ids ids = tokenizer_->EncodeParts(parts);
  EXPECT_EQ(ids.size(), 13u);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end_), 2);
}

TEST_F(SpecialTokensTest, TextOfNeighbouringPartsIsOneRun) {
  const TextPart parts[] = {{"\n", SpecialTokens::kParse}, {"\n", SpecialTokens::kAsText}};
  EXPECT_EQ(tokenizer_->EncodeParts(parts), Ids{two_});
}

TEST_F(SpecialTokensTest, GenerationEndsAtControlTokensOnly) {
  EXPECT_TRUE(tokenizer_->IsEndOfGeneration(end_));
  EXPECT_TRUE(tokenizer_->IsEndOfGeneration(eos_));
  EXPECT_FALSE(tokenizer_->IsEndOfGeneration(normal_)) << "spelled like one, but normal";
  EXPECT_FALSE(tokenizer_->IsEndOfGeneration(tool_));
  EXPECT_FALSE(tokenizer_->IsEndOfGeneration(-1));
  EXPECT_FALSE(tokenizer_->IsEndOfGeneration(tokenizer_->n_vocab()));
  EXPECT_EQ(tokenizer_->eot(), end_);
}

}  // namespace
}  // namespace kvasir::tokenizer

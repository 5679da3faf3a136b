// Vocabularies that are wrong are refused with the key and entry named.
#include "engine/tokenizer/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

using testing::HasSubstr;

void ExpectRefused(const Vocabulary& v, std::string_view what) {
  const auto tokenizer = Tokenizer::Create(v);
  ASSERT_FALSE(tokenizer.ok()) << what;
  EXPECT_EQ(tokenizer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(std::string(what)));
}

TEST(Vocabulary, AByteTokenOutsideABytesRangeIsRefused) {
  for (const std::string text : {"<0x-1>", "<0x100>", "<0x>", "<0xG0>", "<0x 1>", "0x41", ""}) {
    Vocabulary v = SentencePieceVocabulary({});
    const int32_t id = AddToken(v, text, TokenType::kByte);
    ExpectRefused(v, "tokenizer.ggml.tokens[" + std::to_string(id) + "]");
  }
}

TEST(Vocabulary, TwoTokensForOneByteAreRefused) {
  Vocabulary v = SentencePieceVocabulary({});
  AddToken(v, "<0xab>", TokenType::kByte);
  ExpectRefused(v, "byte 171 has a token already");
}

TEST(Vocabulary, SizesThatDifferAreRefused) {
  Vocabulary v = SentencePieceVocabulary({"a"});
  v.scores.pop_back();
  ExpectRefused(v, "tokenizer.ggml.scores: 259 scores, 260 expected");
  v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  v.types.pop_back();
  ExpectRefused(v, "tokenizer.ggml.token_type: 255 types for 256 tokens");
  ExpectRefused(Vocabulary{}, "tokenizer.ggml.tokens: no tokens");
}

TEST(Vocabulary, ScoresThatAreNotFiniteAreRefused) {
  Vocabulary v = SentencePieceVocabulary({"a", "b"});
  v.scores[260] = std::numeric_limits<float>::quiet_NaN();
  ExpectRefused(v, "tokenizer.ggml.scores[260]");
}

TEST(Vocabulary, OneTextForTwoTokensIsRefused) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  AddToken(v, "a", TokenType::kControl);
  ExpectRefused(v, "tokenizer.ggml.tokens[256]: the text 'a' is token 97 already");
}

TEST(Vocabulary, ATextThatIsTooLongIsRefused) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  AddToken(v, std::string(Vocabulary::kTokenBytesMax + 1, 'x'), TokenType::kNormal);
  ExpectRefused(v, "tokenizer.ggml.tokens[256]: 4097 bytes, at most 4096");
}

TEST(Vocabulary, IdsOutsideTheVocabularyAreRefused) {
  for (const int32_t id : {-1, 256, std::numeric_limits<int32_t>::max()}) {
    Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
    v.bos = id;
    ExpectRefused(v, "tokenizer.ggml.bos_token_id: " + std::to_string(id));
    v.bos.reset();
    v.eot = id;
    ExpectRefused(v, "tokenizer.ggml.eot_token_id: " + std::to_string(id));
  }
}

TEST(Vocabulary, AddBosWithoutBosIsRefused) {
  Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
  v.add_bos = true;
  ExpectRefused(v, "tokenizer.ggml.bos_token_id is missing");
}

TEST(Vocabulary, MergesThatDoNotJoinTokensAreRefused) {
  const auto with_merge = [](std::string merge) {
    Vocabulary v = ByteLevelVocabulary(PreTokenizer::kGpt2);
    AddMerge(v, "a", "b");
    AddToken(v, "<c>", TokenType::kControl);
    AddToken(v, "<c", TokenType::kNormal);
    v.merges.push_back(std::move(merge));
    return v;
  };
  ExpectRefused(with_merge("ab"), "tokenizer.ggml.merges[1]: 'ab' is not two texts");
  ExpectRefused(with_merge("a "), "is not two texts");
  ExpectRefused(with_merge(""), "is not two texts");
  ExpectRefused(with_merge("xy z"), "joins a text that is no token");
  ExpectRefused(with_merge("b a"), "makes a text that is no token");
  ExpectRefused(with_merge("a b"), "is there twice");
  ExpectRefused(with_merge("<c >"), "makes a control token");
}

TEST(Vocabulary, TheDigestChangesWithEveryField) {
  const Vocabulary base = SentencePieceVocabulary({"a", "b"});
  const auto differs = [&](const auto& change) {
    Vocabulary v = base;
    change(v);
    return DigestOf(v) != DigestOf(base);
  };
  EXPECT_FALSE(differs([](Vocabulary&) {}));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.algorithm = Algorithm::kByteLevelBpe; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.pre = PreTokenizer::kGpt2; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.texts.back() = "c"; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.types.back() = TokenType::kUserDefined; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.scores.back() -= 1; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.merges.push_back("a b"); }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.bos = 7; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.eos = 7; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.eot = 7; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.unknown.reset(); }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.add_bos = true; }));
  EXPECT_TRUE(differs([](Vocabulary& v) { v.add_space_prefix = true; }));
}

}  // namespace
}  // namespace kvasir::tokenizer

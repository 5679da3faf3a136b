// The malformed model files of tests/golden/bad_gguf whose fault lies in the tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/gguf/file.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::tokenizer {
namespace {

struct BadFile {
  std::string name;
  std::string key;  // that the error names
};

class TokenizerBadFile : public testing::TestWithParam<BadFile> {};

TEST_P(TokenizerBadFile, IsRefusedWithItsKeyNamed) {
  const auto file = gguf::File::Open("tests/golden/bad_gguf/" + GetParam().name + ".gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = Tokenizer::Create(**file);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(std::string(tokenizer.status().message()), testing::HasSubstr(GetParam().key));
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerBadFile,
                         testing::Values(BadFile{"missing_tokens", "tokenizer.ggml.tokens"},
                                         BadFile{"tokens_u32", "tokenizer.ggml.tokens"},
                                         BadFile{"scores_u8", "tokenizer.ggml.scores"},
                                         BadFile{"scores_short", "tokenizer.ggml.scores"},
                                         BadFile{"token_type_short", "tokenizer.ggml.token_type"},
                                         BadFile{"bos_range", "tokenizer.ggml.bos_token_id"},
                                         BadFile{"tokenizer_unknown", "tokenizer.ggml.model"}),
                         [](const auto& param) { return param.param.name; });

TEST(TokenizerFile, TheValidTinyModelHasATokenizer) {
  const auto file = gguf::File::Open("tests/golden/bad_gguf/valid_tiny_llama.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = Tokenizer::Create(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->n_vocab(), 8);
}

}  // namespace
}  // namespace kvasir::tokenizer

// Long runs, on which tokenizers were seen to take quadratic time or to recurse too deep
// (llama.cpp#27783, #21257, #14655): each must come back whole within the time limit of the test,
// which quadratic work on 128,000 characters would pass.
#include <gtest/gtest.h>

#include "tests/engine/tokenizer/golden.h"

namespace kvasir::tokenizer {
namespace {

class LongText : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto model = LoadModel(GetParam());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::move(*model);
  }
  void ExpectComesBack(const std::string& text) {
    const auto ids = model_.tokenizer->Encode(text, SpecialTokens::kAsText);
    EXPECT_LE(ids.size(), text.size());
    EXPECT_EQ(model_.tokenizer->Decode(ids), text);
  }

  Model model_;
};

std::string Repeat(std::string_view unit, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += unit;
  return text;
}

TEST_P(LongText, ARunOfOneLetterComesBack) {
  ExpectComesBack(std::string(26'000, 'a'));
  ExpectComesBack(std::string(128'000, 'a'));
  ExpectComesBack(std::string(128'000, 'Q'));
}

TEST_P(LongText, ManyBlankLinesComeBack) {
  ExpectComesBack(std::string(10'000, '\n'));
  ExpectComesBack(Repeat("\r\n", 64'000));
  ExpectComesBack(Repeat(" \n", 64'000));
}

TEST_P(LongText, RunsOfSpacesSymbolsAndDigitsComeBack) {
  ExpectComesBack(std::string(128'000, ' '));
  ExpectComesBack(std::string(128'000, ' ') + "x");
  ExpectComesBack(std::string(128'000, '!'));
  ExpectComesBack(Repeat("\t ", 64'000));
  ExpectComesBack(Repeat("ab", 64'000));
}

TEST_P(LongText, ALongRunOfHalfAControlTokenComesBack) { ExpectComesBack(Repeat("<|im_", 25'000)); }

INSTANTIATE_TEST_SUITE_P(All, LongText, testing::Values("smollm2", "q05", "gemma3"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace kvasir::tokenizer

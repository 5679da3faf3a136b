// The streaming detokenizer, byte by byte: what is certain comes out, what is not is held back.
#include "engine/tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "tests/engine/tokenizer/vocabularies.h"

namespace kvasir::tokenizer {
namespace {

class DetokenizerTest : public testing::Test {
 protected:
  // Ids of the byte-level vocabulary are byte values.
  std::vector<std::string> PushAll(std::string_view bytes) {
    std::vector<std::string> pieces;
    for (const char c : bytes) pieces.push_back(stream_.Push(static_cast<uint8_t>(c)));
    pieces.push_back(stream_.Flush());
    return pieces;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = MakeChatMlTokenizer();
  Detokenizer stream_{tokenizer_.get()};
};

using Pieces = std::vector<std::string>;

TEST_F(DetokenizerTest, ACharacterComesOutWhenItIsComplete) {
  EXPECT_EQ(PushAll("a\U0001F600b"), (Pieces{"a", "", "", "", "\U0001F600", "b", ""}));
}

TEST_F(DetokenizerTest, AnIncompleteCharacterAtTheEndBecomesOneReplacement) {
  EXPECT_EQ(PushAll("\xF0\x9F\x98"), (Pieces{"", "", "", "\uFFFD"}));
}

TEST_F(DetokenizerTest, BytesThatAreNeverValidBecomeReplacementsAtOnce) {
  EXPECT_EQ(PushAll("\xFF\x80"
                    "a"),
            (Pieces{"\uFFFD", "\uFFFD", "a", ""}));
}

TEST_F(DetokenizerTest, ABrokenSequenceIsReplacedWhenItBreaks) {
  EXPECT_EQ(PushAll("\xE2\x82"
                    "a"),
            (Pieces{"", "",
                    "\uFFFD"
                    "a",
                    ""}));
}

TEST_F(DetokenizerTest, SurrogatesAndOverlongFormsAreReplacedByteByByte) {
  EXPECT_EQ(PushAll("\xED\xA0\x80"), (Pieces{"", "\uFFFD\uFFFD", "\uFFFD", ""}));
  EXPECT_EQ(PushAll("\xC0\x80"), (Pieces{"\uFFFD", "\uFFFD", ""}));
}

TEST_F(DetokenizerTest, ACopyGoesOnByItself) {
  EXPECT_EQ(stream_.Push(0xC3), "");
  Detokenizer copy = stream_;
  EXPECT_EQ(stream_.Push(0xA9), "\u00E9");
  EXPECT_EQ(copy.pending(), "\xC3");
  EXPECT_EQ(copy.Push(0xA8), "\u00E8");
}

TEST_F(DetokenizerTest, PiecesTogetherAreTheSanitizedWhole) {
  const std::string bytes = "a\xE2\x82\xAC\xE2\x82\xFF\xF0\x9F\x98\x80\xF4\x90\x80\x80\xC3";
  std::string text;
  for (const std::string& piece : PushAll(bytes)) text += piece;
  EXPECT_EQ(text, SanitizeUtf8(bytes));
}

TEST(DetokenizerSpacePrefix, TheSpacePutBeforeTextIsLeftOut) {
  Vocabulary v = SentencePieceVocabulary({"\u2581a", "a", "\u2581"});
  v.add_space_prefix = true;
  const auto tokenizer = MakeTokenizer(v);
  Detokenizer stream(tokenizer.get());
  EXPECT_EQ(stream.Push(259), "a");
  EXPECT_EQ(stream.Push(259), " a");
  EXPECT_EQ(stream.Push(1), "<s>");
  EXPECT_EQ(stream.Push(259), "a") << "text after a special token starts anew";
}

}  // namespace
}  // namespace kvasir::tokenizer

// Analyzer: what becomes a term. Goal: inflected forms meet, function words vanish, no input
// breaks.
#include "memory/index/analyzer.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::index {
namespace {

TermCounts Terms(std::string_view text) {
  const auto analyzer = Analyzer::Create();
  EXPECT_TRUE(analyzer.ok()) << analyzer.status();
  return (*analyzer)->Analyze(text);
}

TEST(Analyzer, InflectedFormsBecomeOneTerm) {
  const TermCounts terms = Terms("Running runs RUN; he walked, walking walks");
  EXPECT_EQ(terms, (TermCounts{{"run", 3}, {"walk", 3}}));
}

TEST(Analyzer, StopWordsAndPunctuationAreLeftOut) {
  EXPECT_EQ(Terms("What is the -- ?? of it, don't you, don’t we!"), TermCounts());
}

TEST(Analyzer, PossessivesMeetTheirNoun) {
  EXPECT_EQ(Terms("sister sister's sister’s"), (TermCounts{{"sister", 3}}));
}

TEST(Analyzer, NumbersAndOtherScriptsAreTerms) {
  const TermCounts terms = Terms("Zürich 2026 Москва");
  EXPECT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms.count("2026"), 1u);
  EXPECT_EQ(terms.count("москва"), 1u);
}

TEST(Analyzer, BrokenUtf8SeparatesWords) {
  const TermCounts terms = Terms("lake\xff\xfemountain \xe2\x82");
  EXPECT_EQ(terms.count("lake"), 1u);
  EXPECT_EQ(terms.count("mountain"), 1u);
}

TEST(Analyzer, ALongWordCountsAsItsFirstBytesBetweenCharacters) {
  std::string word;
  for (int i = 0; i < 5000; ++i) word += "ж";
  const TermCounts terms = Terms(word);
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_LE(terms.begin()->first.size(), kTermBytesMax);
  EXPECT_EQ(terms.begin()->first.size() % 2, 0u);
}

TEST(Analyzer, DistinctTermsAreBounded) {
  std::string text;
  for (size_t i = 0; i < kTermsMax + 100; ++i) text += std::to_string(i) + " ";
  EXPECT_EQ(Terms(text).size(), kTermsMax);
}

TEST(Analyzer, EmptyTextHasNoTerms) { EXPECT_TRUE(Terms("").empty()); }

}  // namespace
}  // namespace kvasir::index

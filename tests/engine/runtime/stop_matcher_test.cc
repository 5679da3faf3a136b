// StopMatcher: the text before a stop string is the same however the stream is cut.
#include "engine/runtime/stop_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::runtime {
namespace {

StopMatcher Make(std::vector<std::string> stops) {
  auto matcher = StopMatcher::Create(std::move(stops));
  EXPECT_TRUE(matcher.ok()) << matcher.status();
  return *std::move(matcher);
}

struct Result {
  std::string text;
  bool stopped = false;
  bool operator==(const Result&) const = default;
};

Result RunStream(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher = Make(stops);
  Result result;
  for (const std::string& piece : pieces) result.text += matcher.Push(piece);
  result.stopped = matcher.stopped();
  result.text += matcher.Flush();
  return result;
}

// The definition, without a stream: the shortest prefix that ends with a stop string, without the
// longest stop string it ends with.
Result Direct(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

// Every way to cut `text` into pieces (2^(n − 1) of them).
void ExpectSameForEveryCut(const std::vector<std::string>& stops, const std::string& text) {
  ASSERT_LE(text.size(), 14u);
  const Result expected = Direct(stops, text);
  for (uint32_t cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
    std::vector<std::string> pieces(1);
    for (size_t i = 0; i < text.size(); ++i) {
      if (i > 0 && (cuts >> (i - 1) & 1)) pieces.emplace_back();
      pieces.back() += text[i];
    }
    ASSERT_EQ(RunStream(stops, pieces), expected) << text << " cut " << cuts;
  }
}

TEST(StopMatcher, EveryCutOfTheStreamGivesTheSameText) {
  ExpectSameForEveryCut({"STOP"}, "aSTSTOPb");
  ExpectSameForEveryCut({"aab"}, "aaaaabaa");
  ExpectSameForEveryCut({"abab"}, "abaababab");
  ExpectSameForEveryCut({"STOP"}, "no STO here");
}

TEST(StopMatcher, OverlappingStopsEndAtTheOneThatIsCompleteFirst) {
  ExpectSameForEveryCut({"abcd", "bc"}, "xxabcdyy");
  ExpectSameForEveryCut({"bcd", "abcd"}, "xxabcdyy");
  ExpectSameForEveryCut({"abcx", "bcd"}, "xxabcdyy");
  EXPECT_EQ(RunStream({"bcd", "abcd"}, {"xxabcdyy"}), (Result{"xx", true}));
  EXPECT_EQ(RunStream({"abcd", "bc"}, {"xxabcdyy"}), (Result{"xxa", true}));
}

TEST(StopMatcher, WorksOnBytesInsideMultiByteText) {
  ExpectSameForEveryCut({"\xC3\xA9"}, "caf\xC3\xA8 \xC3\xA9t");  // é, not è
  ExpectSameForEveryCut({"\xA9"}, "a\xC3\xA9z");                 // inside a character
  ExpectSameForEveryCut({"\xF0\x9F\x98\x80"}, "\xF0\x9F\x98\x81\xF0\x9F\x98\x80");
}

TEST(StopMatcher, HoldsBackNoMoreThanWhatCouldBecomeAStopString) {
  StopMatcher matcher = Make({"\n\nUser:"});
  EXPECT_EQ(matcher.Push("Hello\n"), "Hello");
  EXPECT_EQ(matcher.pending(), "\n");
  EXPECT_EQ(matcher.Push("\nUse a"), "\n\nUse a");
  EXPECT_EQ(matcher.Push("b\n\nUser"), "b");
  EXPECT_EQ(matcher.Flush(), "\n\nUser");
}

TEST(StopMatcher, NothingComesAfterAMatch) {
  StopMatcher matcher = Make({"END"});
  EXPECT_EQ(matcher.Push("aENDb"), "a");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, RollbackGivesTheStateOfAFreshMatcher) {
  const std::vector<std::string> pieces = {"x", "a", "ab", "aa", "b", "aab", "c"};
  for (size_t undo = 0; undo <= pieces.size(); ++undo) {
    StopMatcher matcher = Make({"aabaac"});
    for (const std::string& piece : pieces) matcher.Push(piece);
    matcher.Rollback(undo);
    StopMatcher fresh = Make({"aabaac"});
    for (size_t i = 0; i + undo < pieces.size(); ++i) fresh.Push(pieces[i]);
    EXPECT_EQ(matcher.pending(), fresh.pending());
    EXPECT_EQ(matcher.Push("aabaac!"), fresh.Push("aabaac!"));
    EXPECT_EQ(matcher.stopped(), fresh.stopped());
  }
}

TEST(StopMatcher, ACopyGoesItsOwnWay) {
  StopMatcher matcher = Make({"stop"});
  matcher.Push("st");
  StopMatcher copy = matcher;
  EXPECT_EQ(copy.Push("op"), "");
  EXPECT_TRUE(copy.stopped());
  EXPECT_EQ(matcher.Push("ay"), "stay");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, WithoutStopStringsAllTextPasses) {
  StopMatcher matcher;
  EXPECT_EQ(matcher.Push("anything"), "anything");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopMatcher, BoundsAreChecked) {
  for (const std::vector<std::string>& bad : {std::vector<std::string>{""},
                                              {std::string(kStopBytesMax + 1, 'x')},
                                              std::vector<std::string>(kStopStringsMax + 1, "x")}) {
    const base::Status status = StopMatcher::Create(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(base::Field(status), "stop");
  }
  EXPECT_TRUE(StopMatcher::Create({std::string(kStopBytesMax, 'x')}).ok());
}

}  // namespace
}  // namespace kvasir::runtime

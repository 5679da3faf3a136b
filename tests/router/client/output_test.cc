// Output: tables, colours, cleaned texts; goal: what a server sends can neither shift a column nor
// steer the terminal.
#include "router/client/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "router/client/render.h"

namespace kvasir::client {
namespace {

class OutputTest : public testing::Test {
 protected:
  std::ostringstream out_, err_;
  Output plain_{out_, err_, {}};
};

TEST_F(OutputTest, ColumnsAreAsWideAsTheirWidestCellInCharacters) {
  EXPECT_EQ(RenderTable(plain_, {{"name"}, {"n", true}}, {{"Gävle", "7"}, {"x", "123"}}),
            "name     n\n"
            "Gävle    7\n"
            "x      123\n");
  EXPECT_EQ(RenderTable(plain_, {{"name"}, {"n", true}}, {}), "name  n\n");
  EXPECT_EQ(RenderTable(plain_, {{"id"}, {"n", true}}, {{"2024", "-"}}), "id    n\n2024  -\n");
}

TEST_F(OutputTest, FieldsStandInTwoColumns) {
  EXPECT_EQ(RenderFields(plain_, {{"a", "1"}, {"long", "2"}}), "a     1\nlong  2\n");
}

TEST_F(OutputTest, PaintsOnlyWhenTold) {
  EXPECT_EQ(plain_.Paint(Tint::kRed, "x"), "x");
  const Output color(out_, err_, {.color = true});
  EXPECT_EQ(color.Paint(Tint::kRed, "x"), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(color.Paint(Tint::kNone, "x"), "x");
}

TEST(Printable, RemovesWhatSteersATerminalAndKeepsText) {
  EXPECT_EQ(Printable("a\x1b[31mb\x07\r\n\tc\x7f"), "a[31mb\n\tc");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m é €"),
            "31m é €");  // U+009B is one character that does what ESC [ does
}

TEST(OneLine, CutsBetweenCharactersAndJoinsLines) {
  EXPECT_EQ(OneLine("ab\ncd", 10), "ab cd");
  EXPECT_EQ(OneLine("äöüß", 4), "äöüß");
  EXPECT_EQ(OneLine("äöüßx", 4), "äöü…");
}

TEST(Render, NumbersAndTimesReadWell) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{5} << 40), "5.0 TiB");
  google::protobuf::Timestamp time;
  EXPECT_EQ(TimeText(time), "-");
  time.set_seconds(1'700'000'000);
  EXPECT_EQ(TimeText(time), "2023-11-14 22:13:20Z");
  EXPECT_EQ(ModeText(v1::MEMORY_MODE_READ_WRITE), "read_write");
  EXPECT_EQ(ReasonText(v1::MISS_REASON_MODEL_MISMATCH), "model mismatch");
}

TEST(Render, TheUsageLineCountsTheMemoriesAsTheRouteDoesAndNotTheBase) {
  v1::Route route;
  v1::Usage usage;
  usage.set_memory_tokens(21);  // the base
  usage.set_computed_tokens(9);
  EXPECT_EQ(UsageLine(route, usage), "9 tokens computed · 0 tokens, 0.00 s to the first");
  route.add_mounts()->set_logical_tokens(100);
  route.add_mounts()->set_logical_tokens(12);
  usage.set_memory_tokens(133);
  EXPECT_THAT(UsageLine(route, usage), testing::StartsWith("2 memories, 112 tokens restored"));
}

}  // namespace
}  // namespace kvasir::client

// Quote: nothing of an untrusted text can break a message, a log line or a terminal.
#include "engine/gguf/quote.h"

#include <gtest/gtest.h>

namespace kvasir::gguf {
namespace {

TEST(Quote, KeepsPrintableAsciiAndEscapesTheRest) {
  EXPECT_EQ(Quote("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(Quote(""), "''");
  EXPECT_EQ(Quote(std::string_view("a\0b\n\x1b[31m\xff~", 10)), "'a\\x00b\\x0a\\x1b[31m\\xff'");
  EXPECT_EQ(Quote("it's \\"), "'it\\x27s \\x5c'");
}

TEST(Quote, ShowsAtMost64Bytes) {
  EXPECT_EQ(Quote(std::string(64, 'a')), "'" + std::string(64, 'a') + "'");
  EXPECT_EQ(Quote(std::string(65, 'a')), "'" + std::string(64, 'a') + "...'");
}

}  // namespace
}  // namespace kvasir::gguf

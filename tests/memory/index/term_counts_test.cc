// TermCounts: what is encoded is decoded, and every damage of length is refused.
#include "memory/index/term_counts.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::index {
namespace {

const TermCounts kCounts = {{"boat", 1}, {"lake", 300}, {"zürich", 70000}};

TEST(TermCounts, AreReadAsWritten) {
  for (const TermCounts& counts : {TermCounts(), kCounts}) {
    const auto read = DecodeTermCounts(EncodeTermCounts(counts));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, counts);
  }
}

TEST(TermCounts, EveryPrefixAndATailAreRefused) {
  const std::string bytes = EncodeTermCounts(kCounts);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeTermCounts(bytes.substr(0, size)).status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(DecodeTermCounts(bytes + "x").ok());
}

TEST(TermCounts, ACountOfTermsThatIsNotThereIsRefusedAtOnce) {
  EXPECT_FALSE(DecodeTermCounts("\x01\xff\xff\xff\xff\x0f").ok());
  EXPECT_FALSE(DecodeTermCounts("\x01\xff\xff\xff\xff\xff\xff").ok());
}

TEST(TermCounts, EveryFlippedBitIsReadOrRefusedWithoutHarm) {
  const std::string bytes = EncodeTermCounts(kCounts);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    const auto read = DecodeTermCounts(damaged);
    if (read.ok()) {
      EXPECT_LE(read->size(), kCounts.size());
    }
  }
}

}  // namespace
}  // namespace kvasir::index

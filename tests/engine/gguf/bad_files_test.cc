// Every file of tests/golden/bad_gguf: malformed containers are refused with a message that names
// the place, well-formed ones are read, and neither allocates more than a small multiple of the
// bytes present. A loop over a claimed count would run into the time limit of the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/gguf/file.h"
#include "tests/engine/gguf/counting_allocator.h"

namespace kvasir::gguf {
namespace {

constexpr char kFolder[] = "tests/golden/bad_gguf/";
// An opened file costs less than this: a map node per key or tensor, widened array values, error
// texts.
constexpr uint64_t kAllocatedMax = 32 * 1024;

nlohmann::json Manifest() {
  std::ifstream in(std::string(kFolder) + "manifest.json");
  return nlohmann::json::parse(in);
}

TEST(BadFiles, TheManifestHasAllHundredAndFourFiles) {
  int bad = 0;
  const auto manifest = Manifest();
  for (const auto& entry : manifest) bad += entry["kind"] == "bad" ? 1 : 0;
  EXPECT_EQ(manifest.size(), 104u);
  EXPECT_EQ(bad, 100);
}

TEST(BadFiles, AMalformedContainerIsRefusedNamingThePlaceAndAWellFormedOneIsRead) {
  for (const auto& entry : Manifest()) {
    const std::string path = kFolder + entry["file"].get<std::string>();
    const uint64_t before = AllocatedBytes();
    const auto file = File::Open(path);
    const uint64_t allocated = AllocatedBytes() - before;
    EXPECT_LT(allocated, kAllocatedMax) << path;
    if (entry["must_fail"] != "container") {
      EXPECT_TRUE(file.ok()) << path << ": " << file.status();
      continue;
    }
    ASSERT_FALSE(file.ok()) << path << ": " << entry["why"];
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(file.status().message()),
                testing::AllOf(testing::StartsWith(path + ": "),
                               testing::ContainsRegex("byte [0-9]+|key '|tensors? '|tensor name")))
        << entry["why"];
  }
}

TEST(BadFiles, AllocationsAreCounted) {
  const uint64_t before = AllocatedBytes();
  const std::string text(1000, 'x');
  EXPECT_GE(AllocatedBytes() - before, text.size());
}

}  // namespace
}  // namespace kvasir::gguf

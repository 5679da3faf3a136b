// The sealed form of a value: opens only whole, under its own key and data key.
#include "memory/store/value_seal.h"

#include <gtest/gtest.h>

namespace kvasir::store {
namespace {

constexpr kv::DataKey kDataKey = {1, 2, 3};

TEST(ValueSeal, OpensWhatItSealed) {
  base::SystemEntropy entropy;
  for (const size_t size : {0, 1, 15, 16, 17, 1000}) {
    const std::string value(size, 'v');
    const std::string sealed = SealValue(kDataKey, "key", value, entropy);
    EXPECT_EQ(sealed.size(), size + kValueOverheadBytes);
    EXPECT_EQ(OpenValue(kDataKey, "key", sealed).value(), value);
  }
}

TEST(ValueSeal, RefusesDamageCutsAnotherKeyAndAnotherDataKey) {
  base::SystemEntropy entropy;
  const std::string sealed = SealValue(kDataKey, "key", "value", entropy);
  for (size_t i = 1; i < sealed.size(); ++i) {
    std::string damaged = sealed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_TRUE(absl::IsDataLoss(OpenValue(kDataKey, "key", damaged).status())) << i;
  }
  for (size_t size = 0; size < sealed.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(OpenValue(kDataKey, "key", sealed.substr(0, size)).status()));
  }
  EXPECT_TRUE(absl::IsDataLoss(OpenValue(kDataKey, "kez", sealed).status()));
  EXPECT_TRUE(absl::IsDataLoss(OpenValue(kv::DataKey{}, "key", sealed).status()));
}

TEST(ValueSeal, RefusesANewerVersionAsSuch) {
  base::SystemEntropy entropy;
  std::string sealed = SealValue(kDataKey, "key", "value", entropy);
  sealed[0] = 2;
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenValue(kDataKey, "key", sealed).status()));
  sealed[0] = 0;
  EXPECT_TRUE(absl::IsDataLoss(OpenValue(kDataKey, "key", sealed).status()));
}

TEST(ValueSeal, SealsTheSameValueDifferentlyEachTime) {
  base::SystemEntropy entropy;
  EXPECT_NE(SealValue(kDataKey, "key", "value", entropy),
            SealValue(kDataKey, "key", "value", entropy));
}

}  // namespace
}  // namespace kvasir::store

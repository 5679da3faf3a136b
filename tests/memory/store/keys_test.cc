// Keys: stored order is the order of RecordKey, hashes depend on every part.
#include "memory/store/keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace kvasir::store {
namespace {

RecordKey KeyOf(uint8_t user, Kind kind, uint8_t id, uint64_t sequence) {
  RecordKey key = {{}, kind, {}, sequence};
  key.user.bytes.fill(user);
  key.id.bytes.fill(id);
  return key;
}

TEST(RecordKey, StoredOrderIsTheOrderOfKeys) {
  std::vector<RecordKey> keys;
  for (const uint8_t user : {0, 1, 127, 128, 255}) {
    for (const Kind kind : {Kind::kUser, Kind::kTurn, Kind::kOperation}) {
      for (const uint8_t id : {0, 200}) {
        for (const uint64_t sequence : {uint64_t{0}, uint64_t{255}, uint64_t{256}, UINT64_MAX}) {
          keys.push_back(KeyOf(user, kind, id, sequence));
        }
      }
    }
  }
  ASSERT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  for (size_t i = 1; i < keys.size(); ++i) {
    EXPECT_LT(EncodeKey(keys[i - 1]), EncodeKey(keys[i])) << i;
  }
}

TEST(RecordKey, DecodesWhatWasEncodedAndNothingElse) {
  const RecordKey key = KeyOf(7, Kind::kMemory, 9, 0x0102030405060708);
  const std::string bytes = EncodeKey(key);
  ASSERT_EQ(bytes.size(), kRecordKeyBytes);
  EXPECT_EQ(DecodeKey(bytes), key);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeKey(bytes.substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(DecodeKey(bytes + "x"), std::nullopt);
  for (const int kind : {0, kKindMax + 1, 255}) {
    std::string unknown = bytes;
    unknown[16] = static_cast<char>(kind);
    EXPECT_EQ(DecodeKey(unknown), std::nullopt) << kind;
  }
}

TEST(UserKey, DependsOnKeyTenantUserAndTheirBorder) {
  IndexKey other{};
  other[31] = 1;
  const std::set<UserKey> keys = {
      MakeUserKey(IndexKey{}, "tenant", "user"), MakeUserKey(other, "tenant", "user"),
      MakeUserKey(IndexKey{}, "tenantu", "ser"), MakeUserKey(IndexKey{}, "tenan", "tuser"),
      MakeUserKey(IndexKey{}, "", "tenantuser"), MakeUserKey(IndexKey{}, "tenantuser", "")};
  EXPECT_EQ(keys.size(), 6u);
}

TEST(UserKey, IsTheSameInEveryProcess) {
  // HMAC-SHA256 of Python's hmac module over the same bytes.
  EXPECT_EQ(base::ToHex(MakeUserKey(IndexKey{}, "tenant", "user").bytes),
            "a16907b3394b443238b4ab65d99adc91");
}

TEST(NameId, DependsOnKeyUserKindAndName) {
  IndexKey other{};
  other[0] = 1;
  const UserKey a = MakeUserKey(IndexKey{}, "t", "a");
  const UserKey b = MakeUserKey(IndexKey{}, "t", "b");
  const std::set<RecordId> ids = {MakeNameId(IndexKey{}, a, Kind::kSession, "name"),
                                  MakeNameId(other, a, Kind::kSession, "name"),
                                  MakeNameId(IndexKey{}, b, Kind::kSession, "name"),
                                  MakeNameId(IndexKey{}, a, Kind::kMemory, "name"),
                                  MakeNameId(IndexKey{}, a, Kind::kSession, "name2")};
  EXPECT_EQ(ids.size(), 5u);
}

TEST(NewRecordId, DoesNotRepeat) {
  base::SystemEntropy entropy;
  std::set<RecordId> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewRecordId(entropy));
  EXPECT_EQ(ids.size(), 1000u);
}

}  // namespace
}  // namespace kvasir::store

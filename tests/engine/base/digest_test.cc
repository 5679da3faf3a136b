// SHA-256 against the vectors of FIPS 180-4; the framing of Hasher.
#include "engine/base/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::base {
namespace {

// FIPS 180-4 example vectors (NIST, "SHA256.pdf"), and the digest of nothing.
TEST(Sha256, GivesTheKnownAnswers) {
  EXPECT_EQ(Sha256({}).Hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256(AsBytes("abc")).Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).Hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256(AsBytes(std::string(1000000, 'a'))).Hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

Digest OfParts(std::string_view first, std::string_view second) {
  Hasher hasher;
  hasher.Add(AsBytes(first));
  hasher.Add(AsBytes(second));
  return hasher.Finish();
}

Digest OfTexts(std::string_view first, std::string_view second) {
  Hasher hasher;
  hasher.AddText(first);
  hasher.AddText(second);
  return hasher.Finish();
}

TEST(Hasher, AddsBytesAsIfTheyWereOne) {
  EXPECT_EQ(OfParts("a", "bc"), Sha256(AsBytes("abc")));
  EXPECT_EQ(OfParts("", "abc"), Sha256(AsBytes("abc")));
}

TEST(Hasher, NeverLetsTwoTextsRunTogether) {
  EXPECT_NE(OfTexts("a", "bc"), OfTexts("ab", "c"));
  EXPECT_NE(OfTexts("", "abc"), OfTexts("abc", ""));
  EXPECT_EQ(OfTexts("a", "bc"), OfTexts("a", "bc"));
}

TEST(Hasher, AddsIntegersLittleEndian) {
  Hasher hasher;
  hasher.AddInt(0x0102030405060708);
  hasher.AddInt(-1);
  EXPECT_EQ(hasher.Finish(), Sha256(AsBytes("\x08\x07\x06\x05\x04\x03\x02\x01"
                                            "\xff\xff\xff\xff\xff\xff\xff\xff")));
}

TEST(ToHex, WritesTwoLowerCaseDigitsAByte) {
  const uint8_t bytes[] = {0x00, 0x0f, 0xa0, 0xff};
  EXPECT_EQ(ToHex(bytes), "000fa0ff");
  EXPECT_EQ(ToHex({}), "");
}

TEST(Digest, OrdersByItsBytes) {
  Digest low;
  Digest high;
  high.bytes[0] = 1;
  low.bytes[31] = 0xff;
  EXPECT_LT(low, high);
  EXPECT_EQ(low, low);
}

}  // namespace
}  // namespace kvasir::base

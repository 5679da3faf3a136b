// RecordCipher against known answers and against damage.
#include "engine/kv/seal.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

std::vector<uint8_t> SealText(RecordCipher& cipher, uint32_t nonce, std::string_view aad,
                              std::string_view text) {
  std::vector<uint8_t> out(text.size() + kTagBytes);
  const RecordCipher::Bytes piece = base::AsBytes(text);
  cipher.Seal(nonce, base::AsBytes(aad), {&piece, 1}, out.data());
  return out;
}

RecordCipher TestCipher(uint8_t fill) {
  const std::string salt(kSaltBytes, 's');
  return RecordCipher(TestKey(fill), base::AsBytes(salt), base::AsBytes("info"));
}

TEST(RecordCipher, GivesTheKnownAnswer) {
  // HKDF-SHA256 and AES-256-GCM of Python's cryptography package on the same input.
  RecordCipher cipher = TestCipher(7);
  EXPECT_EQ(base::ToHex(SealText(cipher, 3, "aad", "attention state")),
            "f89a28bacd9b0a006bba3ee632791f223fd8d1bc4d6950b13fd0fbe6f7c9ca");
}

TEST(RecordCipher, OpensWhatItSealedWhateverThePieces) {
  const std::string text = "0123456789abcdefghijklmnopqrstuvwxyz";
  RecordCipher cipher = TestCipher(1);
  const std::vector<uint8_t> whole = SealText(cipher, 0, "", text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const RecordCipher::Bytes pieces[] = {base::AsBytes(text).first(cut),
                                          base::AsBytes(text).subspan(cut)};
    std::vector<uint8_t> sealed(text.size() + kTagBytes);
    TestCipher(1).Seal(0, {}, pieces, sealed.data());
    ASSERT_EQ(sealed, whole) << cut;
  }
  std::string opened(text.size(), '\0');
  ASSERT_TRUE(cipher.Open(0, {}, whole, reinterpret_cast<uint8_t*>(opened.data())));
  EXPECT_EQ(opened, text);
}

TEST(RecordCipher, RefusesAnyFlippedBitNonceAadOrKey) {
  RecordCipher cipher = TestCipher(1);
  const std::vector<uint8_t> sealed = SealText(cipher, 5, "aad", "text");
  std::vector<uint8_t> out(sealed.size());
  ASSERT_TRUE(cipher.Open(5, base::AsBytes("aad"), sealed, out.data()));
  for (size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = sealed;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_FALSE(cipher.Open(5, base::AsBytes("aad"), damaged, out.data())) << bit;
  }
  EXPECT_FALSE(cipher.Open(6, base::AsBytes("aad"), sealed, out.data()));
  EXPECT_FALSE(cipher.Open(5, base::AsBytes("add"), sealed, out.data()));
  EXPECT_FALSE(TestCipher(2).Open(5, base::AsBytes("aad"), sealed, out.data()));
}

TEST(RecordCipher, SealsNothingToATag) {
  RecordCipher cipher = TestCipher(1);
  const std::vector<uint8_t> sealed = SealText(cipher, 0, "aad", "");
  ASSERT_EQ(sealed.size(), kTagBytes);
  EXPECT_TRUE(cipher.Open(0, base::AsBytes("aad"), sealed, nullptr));
}

}  // namespace
}  // namespace kvasir::kv

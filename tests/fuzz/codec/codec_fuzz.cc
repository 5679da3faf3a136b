// Fuzz target of the segment codec. The first byte chooses what the rest is:
//   0  a whole header, as it comes from disk or a peer
//   1  plan_bytes [2, little-endian] ‖ plan ‖ chunk contents: everything is sealed under the right
//   key
//      first, so that the checks behind the seal are reached
// A segment that decodes must encode and decode again to the same content.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "engine/base/check.h"
#include "engine/kv/codec.h"
#include "engine/kv/header.h"

namespace kvasir::kv {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr DataKey kKey = {1, 2, 3};
constexpr SegmentId kId = {4, 5, 6};
// Contents are made up only for plans of this size: the target tests checks, not memory.
constexpr uint64_t kChunkBytesMax = 1 << 16;
constexpr int64_t kChunksMax = 256;

std::string Seal(RecordCipher& cipher, uint32_t nonce, const std::string& aad, Bytes content) {
  std::string sealed(content.size() + kTagBytes, '\0');
  cipher.Seal(nonce, base::AsBytes(aad), {&content, 1}, reinterpret_cast<uint8_t*>(sealed.data()));
  return sealed;
}

// The next `count` bytes of `content`, filled up with zeros.
std::string Next(Bytes& content, uint64_t count) {
  const Bytes have = content.first(std::min<uint64_t>(count, content.size()));
  content = content.subspan(have.size());
  std::string chunk(have.begin(), have.end());
  chunk.resize(count);
  return chunk;
}

void CheckRoundTrip(const KvSegment& segment) {
  base::SeededEntropy entropy(1);
  const auto again = Decode(Encode(segment, kId, kKey, entropy), kKey);
  KVASIR_CHECK(again.ok());
  KVASIR_CHECK((*again)->ContentDigest() == segment.ContentDigest());
}

void DecodeSealed(Bytes plan_bytes, Bytes content) {
  const auto plan = ParsePlan(plan_bytes);
  const int64_t chunks = plan.ok() ? plan->chunk_count() : 1;
  if (chunks > kChunksMax) return;
  const ClearHeader clear{.version = kCodecVersion,
                          .id = kId,
                          .salt = {},
                          .chunk_count = static_cast<uint32_t>(chunks),
                          .plan_bytes = static_cast<uint32_t>(plan_bytes.size())};
  RecordCipher cipher = MakeSegmentCipher(kKey, clear);
  EncodedSegment encoded;
  encoded.id = kId;
  encoded.header = WriteClearHeader(clear);
  encoded.header += Seal(cipher, kHeaderNonce, encoded.header, plan_bytes);
  const base::Digest header_digest = base::Sha256(base::AsBytes(encoded.header));
  std::string tags;
  for (int64_t i = 0; plan.ok() && i < chunks; ++i) {
    if (plan->ChunkBytes(i) > kChunkBytesMax) return;
    const auto index = static_cast<uint32_t>(i);
    const std::string aad = ChunkAad(kId, index, clear.chunk_count, header_digest);
    const std::string chunk = Next(content, plan->ChunkBytes(i));
    encoded.chunks.push_back(Seal(cipher, index, aad, base::AsBytes(chunk)));
    tags += encoded.chunks.back().substr(chunk.size());
  }
  encoded.digest = SegmentDigest(header_digest, base::AsBytes(tags));
  const auto segment = Decode(encoded, kKey);
  KVASIR_CHECK(segment.ok() || base::Reason(segment.status()) == "STATE_CORRUPT");
  if (segment.ok()) CheckRoundTrip(**segment);
}

void Run(Bytes input) {
  if (input.empty()) return;
  const uint8_t mode = input[0];
  input = input.subspan(1);
  if (mode % 2 == 0) {
    const auto decoder = Decoder::Open(input, kId, kKey);
    if (decoder.ok()) KVASIR_CHECK((*decoder)->chunk_count() > 0);
    return;
  }
  if (input.size() < 2) return;
  const size_t plan_bytes = std::min<size_t>(input[0] | input[1] << 8, input.size() - 2);
  DecodeSealed(input.subspan(2, plan_bytes), input.subspan(2 + plan_bytes));
}

}  // namespace
}  // namespace kvasir::kv

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvasir::kv::Run({data, size});
  return 0;
}

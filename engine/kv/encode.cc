#include "engine/base/check.h"
#include "engine/kv/codec.h"
#include "engine/kv/header.h"

namespace kvasir::kv {
namespace {

using Piece = RecordCipher::Bytes;

template <typename T>
Piece AsPiece(const std::vector<T>& array) {
  return {reinterpret_cast<const uint8_t*>(array.data()), array.size() * sizeof(T)};
}

// The arrays of a chunk in stored order.
std::vector<Piece> ChunkPieces(const KvSegment& segment, const SegmentPlan& plan, int64_t chunk) {
  const IndexRange& tokens = plan.chunk_tokens(chunk);
  const IndexRange& layers = plan.chunk_layers(chunk);
  const size_t element = ElementBytes(plan.info.element_type);
  std::vector<Piece> pieces;
  for (int32_t layer = layers.begin; layer < layers.end; ++layer) {
    const Stream& stream = plan.geometry.layers[layer];
    for (int kv_head = 0; kv_head < stream.kv_heads; ++kv_head) {
      const HeadSlots& head = segment.head(layer, kv_head);
      if (!plan.exact) {
        for (const Piece piece : {AsPiece(head.positions), AsPiece(head.beta), AsPiece(head.keys),
                                  AsPiece(head.values)}) {
          if (!piece.empty()) pieces.push_back(piece);
        }
        continue;
      }
      const auto rows = [&](const std::vector<std::byte>& array, int32_t width) {
        const size_t row_bytes = width * element;
        return AsPiece(array).subspan(row_bytes * tokens.begin,
                                      row_bytes * (tokens.end - tokens.begin));
      };
      pieces.push_back(rows(head.keys, stream.k_width));
      pieces.push_back(rows(head.values, stream.v_width));
    }
  }
  return pieces;
}

uint8_t* Writable(std::string& bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }

std::string SealHeader(const ClearHeader& clear, const std::string& plan, RecordCipher& cipher) {
  std::string header = WriteClearHeader(clear);
  KVASIR_CHECK(header.size() == kClearHeaderBytes);
  const std::string aad = header;
  header.resize(kClearHeaderBytes + plan.size() + kTagBytes);
  const Piece piece = base::AsBytes(plan);
  cipher.Seal(kHeaderNonce, base::AsBytes(aad), {&piece, 1}, Writable(header) + kClearHeaderBytes);
  return header;
}

}  // namespace

size_t EncodedSegment::bytes() const {
  size_t total = header.size();
  for (const std::string& chunk : chunks) total += chunk.size();
  return total;
}

EncodedSegment Encode(const KvSegment& segment, const SegmentId& id, const DataKey& key,
                      base::Entropy& entropy) {
  const SegmentPlan plan = MakePlan(segment);
  const std::string plan_bytes = WritePlan(plan);
  const int64_t count = plan.chunk_count();
  KVASIR_CHECK(count < kHeaderNonce && plan_bytes.size() < UINT32_MAX);
  ClearHeader clear{.version = kCodecVersion,
                    .id = id,
                    .salt = {},
                    .chunk_count = static_cast<uint32_t>(count),
                    .plan_bytes = static_cast<uint32_t>(plan_bytes.size())};
  entropy.Fill(clear.salt);
  RecordCipher cipher = MakeSegmentCipher(key, clear);
  EncodedSegment encoded;
  encoded.id = id;
  encoded.header = SealHeader(clear, plan_bytes, cipher);
  const base::Digest header_digest = base::Sha256(base::AsBytes(encoded.header));
  std::string tags;
  encoded.chunks.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    std::string& chunk = encoded.chunks[i];
    chunk.resize(plan.ChunkBytes(i) + kTagBytes);
    const auto index = static_cast<uint32_t>(i);
    cipher.Seal(index, base::AsBytes(ChunkAad(id, index, clear.chunk_count, header_digest)),
                ChunkPieces(segment, plan, i), Writable(chunk));
    tags.append(chunk, chunk.size() - kTagBytes);
  }
  encoded.digest = SegmentDigest(header_digest, base::AsBytes(tags));
  return encoded;
}

}  // namespace kvasir::kv

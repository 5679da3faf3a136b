// Codec: the disk and wire form of a KvSegment (docs/formats.md): one header and independently
// sealed chunks, one per (token range of at most 256, turn-aligned where turns are shorter) ×
// (group of layers), so that a layer can be used while the next arrives and single turns can be
// read. Compacted segments have one token range.
//
// Every length is checked against the bytes present before any arithmetic or allocation. A chunk is
// AES-256-GCM under the record's subkey (HKDF-SHA256 of the data key with the record's random
// salt), nonce = chunk index, AAD = segment id, chunk index, chunk count, header digest. The
// segment digest covers the header and all chunk tags.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "engine/kv/seal.h"
#include "engine/kv/segment.h"

namespace kvasir::kv {

inline constexpr int kCodecVersion = 1;
inline constexpr int kChunkTokensMax = 256;
inline constexpr int kChunkLayersMax = 8;

using SegmentId = std::array<uint8_t, 16>;  // server-made, random

// A segment in its stored form. The header is sealed too (it holds token ids): in clear it has only
// version, id, salt, sizes.
struct EncodedSegment {
  SegmentId id{};
  std::string header;
  std::vector<std::string> chunks;
  base::Digest digest;  // over the header and the chunks' tags
  size_t bytes() const;
};

// Seals `segment` under `key`. `entropy` gives the salt. Never fails on a valid segment.
EncodedSegment Encode(const KvSegment& segment, const SegmentId& id, const DataKey& key,
                      base::Entropy& entropy);

// Decoder: opens the header first, then chunks in any order.
class Decoder {
 public:
  // Errors: DataLoss reason STATE_CORRUPT (lengths, digest, tag, or content wrong; says which),
  // FailedPrecondition (newer version).
  static base::StatusOr<std::unique_ptr<Decoder>> Open(std::span<const uint8_t> header,
                                                       const SegmentId& id, const DataKey& key);
  ~Decoder();

  const SegmentInfo& info() const;
  const Geometry& geometry() const;
  int chunk_count() const;
  // Adds chunk `index`. Errors: DataLoss reason STATE_CORRUPT (naming the chunk), InvalidArgument
  // (index out of range or twice).
  base::Status AddChunk(int index, std::span<const uint8_t> chunk);
  // The segment once all chunks are in, checked against `expected` (EncodedSegment::digest).
  // Errors: DataLoss reason STATE_CORRUPT, FailedPrecondition (chunks missing).
  base::StatusOr<std::shared_ptr<const KvSegment>> Finish(const base::Digest& expected);

 private:
  Decoder();
  struct State;
  std::unique_ptr<State> state_;
};

// Open, all chunks, Finish.
base::StatusOr<std::shared_ptr<const KvSegment>> Decode(const EncodedSegment& encoded,
                                                        const DataKey& key);

}  // namespace kvasir::kv

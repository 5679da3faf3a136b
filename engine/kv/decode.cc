#include <cstring>

#include "engine/base/check.h"
#include "engine/kv/codec.h"
#include "engine/kv/header.h"

namespace kvasir::kv {
namespace {

// Moves the next `count` elements of `from` to the end of `to`.
template <typename T>
void Take(std::span<const uint8_t>& from, std::vector<T>& to, size_t count) {
  const size_t bytes = count * sizeof(T);
  KVASIR_CHECK(bytes <= from.size());
  if (bytes == 0) return;
  const size_t old = to.size();
  to.resize(old + count);
  std::memcpy(to.data() + old, from.data(), bytes);
  from = from.subspan(bytes);
}

void Reserve(HeadSlots& head, const HeadShape& shape, const Stream& stream, size_t element) {
  const auto slots = static_cast<size_t>(shape.slots);
  head.slots = shape.slots;
  head.keys.reserve(slots * stream.k_width * element);
  head.values.reserve(slots * stream.v_width * element);
}

}  // namespace

struct Decoder::State {
  State(SegmentPlan plan_in, const ClearHeader& clear_in, const base::Digest& header_digest_in,
        RecordCipher cipher_in)
      : plan(std::move(plan_in)),
        clear(clear_in),
        header_digest(header_digest_in),
        cipher(std::move(cipher_in)),
        chunks(clear.chunk_count),
        tags(size_t{clear.chunk_count} * kTagBytes) {}

  SegmentPlan plan;
  ClearHeader clear;
  base::Digest header_digest;
  RecordCipher cipher;
  std::vector<std::unique_ptr<std::vector<uint8_t>>> chunks;  // opened; null until added
  std::vector<uint8_t> tags;
  int added = 0;

  // The arrays of the layers of `group`, from its chunks in token order.
  void Assemble(size_t group, std::vector<HeadSlots>& heads);
};

void Decoder::State::Assemble(size_t group, std::vector<HeadSlots>& heads) {
  const size_t ranges = plan.token_ranges.size();
  const IndexRange& layers = plan.layer_groups[group];
  const size_t element = ElementBytes(plan.info.element_type);
  const size_t first_head = plan.FirstHead(layers.begin);
  for (size_t range = 0; range < ranges; ++range) {
    std::unique_ptr<std::vector<uint8_t>> chunk = std::move(chunks[group * ranges + range]);
    std::span<const uint8_t> bytes(*chunk);
    size_t index = first_head;
    for (int32_t layer = layers.begin; layer < layers.end; ++layer) {
      const Stream& stream = plan.geometry.layers[layer];
      for (int i = 0; i < stream.kv_heads; ++i, ++index) {
        const HeadShape& shape = plan.heads[index];
        HeadSlots& head = heads[index];
        if (range == 0) Reserve(head, shape, stream, element);
        const auto slots = static_cast<size_t>(plan.chunk_slots(shape, plan.token_ranges[range]));
        if (shape.positions) Take(bytes, head.positions, slots);
        if (shape.beta) Take(bytes, head.beta, slots);
        Take(bytes, head.keys, slots * stream.k_width * element);
        Take(bytes, head.values, slots * stream.v_width * element);
      }
    }
    KVASIR_CHECK(bytes.empty());
  }
}

Decoder::Decoder() = default;
Decoder::~Decoder() = default;

base::StatusOr<std::unique_ptr<Decoder>> Decoder::Open(std::span<const uint8_t> header,
                                                       const SegmentId& id, const DataKey& key) {
  KVASIR_ASSIGN_OR_RETURN(const ClearHeader clear, ParseClearHeader(header));
  if (clear.id != id) {
    return Corrupt("segment header of id {}, expected {}", base::ToHex(clear.id), base::ToHex(id));
  }
  RecordCipher cipher = MakeSegmentCipher(key, clear);
  std::vector<uint8_t> plan_bytes(clear.plan_bytes);
  if (!cipher.Open(kHeaderNonce, header.first(kClearHeaderBytes), header.subspan(kClearHeaderBytes),
                   plan_bytes.data())) {
    return Corrupt("segment {}: header does not open under this key", base::ToHex(id));
  }
  KVASIR_ASSIGN_OR_RETURN(SegmentPlan plan, ParsePlan(plan_bytes));
  if (plan.chunk_count() != clear.chunk_count) {
    return Corrupt("segment {}: {} chunks announced, the ranges give {}", base::ToHex(id),
                   clear.chunk_count, plan.chunk_count());
  }
  std::unique_ptr<Decoder> decoder(new Decoder);
  decoder->state_ =
      std::make_unique<State>(std::move(plan), clear, base::Sha256(header), std::move(cipher));
  return decoder;
}

const SegmentInfo& Decoder::info() const { return state_->plan.info; }
const Geometry& Decoder::geometry() const { return state_->plan.geometry; }
int Decoder::chunk_count() const { return static_cast<int>(state_->clear.chunk_count); }

base::Status Decoder::AddChunk(int index, std::span<const uint8_t> chunk) {
  State& state = *state_;
  if (index < 0 || index >= chunk_count()) {
    return base::InvalidArgument("chunk {} of a segment of {}", index, chunk_count());
  }
  if (state.chunks[index] != nullptr) return base::InvalidArgument("chunk {} was added", index);
  const uint64_t expected = state.plan.ChunkBytes(index) + kTagBytes;
  if (chunk.size() != expected) {
    return Corrupt("chunk {} has {} bytes, {} expected", index, chunk.size(), expected);
  }
  auto content = std::make_unique<std::vector<uint8_t>>(expected - kTagBytes);
  const auto number = static_cast<uint32_t>(index);
  const std::string aad =
      ChunkAad(state.clear.id, number, state.clear.chunk_count, state.header_digest);
  if (!state.cipher.Open(number, base::AsBytes(aad), chunk, content->data())) {
    return Corrupt("chunk {}: tag is wrong", index);
  }
  std::memcpy(state.tags.data() + size_t{number} * kTagBytes,
              chunk.data() + chunk.size() - kTagBytes, kTagBytes);
  state.chunks[index] = std::move(content);
  ++state.added;
  return base::OkStatus();
}

base::StatusOr<std::shared_ptr<const KvSegment>> Decoder::Finish(const base::Digest& expected) {
  KVASIR_CHECK(state_ != nullptr);
  if (state_->added != chunk_count()) {
    return base::FailedPrecondition("{} of {} chunks added", state_->added, chunk_count());
  }
  const base::Digest digest = SegmentDigest(state_->header_digest, state_->tags);
  if (digest != expected) {
    return Corrupt("segment digest {}, expected {}", digest.Hex(), expected.Hex());
  }
  std::vector<HeadSlots> heads(state_->plan.heads.size());
  for (size_t group = 0; group < state_->plan.layer_groups.size(); ++group) {
    state_->Assemble(group, heads);
  }
  state_->added = 0;  // the chunks are used up
  auto segment = KvSegment::Create(state_->plan.geometry, state_->plan.info, std::move(heads));
  if (!segment.ok()) return Corrupt("segment: {}", base::ToStd(segment.status().message()));
  return segment;
}

base::StatusOr<std::shared_ptr<const KvSegment>> Decode(const EncodedSegment& encoded,
                                                        const DataKey& key) {
  KVASIR_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                          Decoder::Open(base::AsBytes(encoded.header), encoded.id, key));
  if (encoded.chunks.size() != static_cast<size_t>(decoder->chunk_count())) {
    return Corrupt("segment of {} chunks, {} are here", decoder->chunk_count(),
                   encoded.chunks.size());
  }
  for (int i = 0; i < decoder->chunk_count(); ++i) {
    KVASIR_RETURN_IF_ERROR(decoder->AddChunk(i, base::AsBytes(encoded.chunks[i])));
  }
  return decoder->Finish(encoded.digest);
}

}  // namespace kvasir::kv

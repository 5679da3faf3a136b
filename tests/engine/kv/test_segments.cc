#include "tests/engine/kv/test_segments.h"

#include <limits>

#include "engine/base/check.h"
#include "engine/base/rng.h"

namespace kvasir::kv {
namespace {

std::vector<std::byte> RandomBytes(base::SeededEntropy& entropy, size_t count) {
  std::vector<uint8_t> bytes(count);
  entropy.Fill(bytes);
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = std::byte{bytes[i]};
  return out;
}

HeadSlots RandomHead(const TestShape& shape, base::SeededEntropy& entropy, int slots) {
  const int element = ElementBytes(shape.type);
  HeadSlots head;
  head.slots = slots;
  head.keys = RandomBytes(entropy, size_t(slots) * shape.k_width * element);
  head.values = RandomBytes(entropy, size_t(slots) * shape.v_width * element);
  return head;
}

}  // namespace

Geometry TestGeometry(const TestShape& shape) {
  Geometry geometry;
  geometry.ropes = {{.interleaved = false, .base = 1e6, .scale = 1, .factors = {1, 2}},
                    {.interleaved = true, .base = 1e4, .scale = 0.5, .factors = {}}};
  for (int layer = 0; layer < shape.layers; ++layer) {
    const bool windowed = layer % 2 == 1;
    geometry.layers.push_back({.kind = windowed ? StreamKind::kSlidingWindow : StreamKind::kFull,
                               .kv_heads = shape.kv_heads,
                               .k_width = shape.k_width,
                               .v_width = shape.v_width,
                               .rotated = windowed ? 2 : 4,
                               .rope = windowed ? 1 : 0,
                               .window = windowed ? 4096 : 0});
  }
  return geometry;
}

SegmentInfo TestInfo(const TestShape& shape) {
  SegmentInfo info;
  const base::Digest file = base::Sha256(base::AsBytes("weights"));
  info.model_id = MakeModelId(file, file, TestGeometry(shape));
  info.build_id = MakeBuildId(kCodecVersion, "test/1", "f16", "none");
  info.first_position = shape.first_position;
  info.element_type = shape.type;
  info.turns = shape.turns;
  for (int i = 0; i < shape.tokens; ++i) info.tokens.push_back(i * 31 % 1000);
  ContextChain chain(info.model_id);
  info.parent_id = chain.id();
  info.context_id = chain.AddTokens(shape.first_position, info.tokens).id();
  return info;
}

std::vector<HeadSlots> ExactHeads(const TestShape& shape) {
  base::SeededEntropy entropy(shape.seed);
  std::vector<HeadSlots> heads;
  for (int i = 0; i < shape.layers * shape.kv_heads; ++i) {
    heads.push_back(RandomHead(shape, entropy, shape.tokens));
  }
  return heads;
}

std::vector<HeadSlots> RaggedHeads(const TestShape& shape) {
  base::SeededEntropy entropy(shape.seed);
  std::vector<HeadSlots> heads;
  for (int i = 0; i < shape.layers * shape.kv_heads; ++i) {
    const int slots = i == 1 ? 0 : (shape.tokens + i) / (i + 1);
    HeadSlots& head = heads.emplace_back(RandomHead(shape, entropy, slots));
    for (int slot = 0; slot < slots; ++slot) {
      const int64_t last = shape.first_position + shape.tokens - slots + slot;
      head.positions.push_back(static_cast<int32_t>(last));
      if (i % 2 == 0) head.beta.push_back(0.25f * static_cast<float>(slot) - 3);
    }
    if (!head.beta.empty()) head.beta[0] = -std::numeric_limits<float>::infinity();
  }
  return heads;
}

std::shared_ptr<const KvSegment> ExactSegment(const TestShape& shape) {
  auto segment = KvSegment::Create(TestGeometry(shape), TestInfo(shape), ExactHeads(shape));
  KVASIR_CHECK(segment.ok());
  return *segment;
}

std::shared_ptr<const KvSegment> RaggedSegment(const TestShape& shape) {
  auto segment = KvSegment::Create(TestGeometry(shape), TestInfo(shape), RaggedHeads(shape));
  KVASIR_CHECK(segment.ok());
  return *segment;
}

bool SameSegment(const KvSegment& a, const KvSegment& b) {
  if (!(a.geometry() == b.geometry()) || !(a.info() == b.info())) return false;
  if (a.exact() != b.exact() || a.bytes() != b.bytes()) return false;
  for (size_t layer = 0; layer < a.geometry().layers.size(); ++layer) {
    for (int head = 0; head < a.geometry().layers[layer].kv_heads; ++head) {
      if (!(a.head(int(layer), head) == b.head(int(layer), head))) return false;
    }
  }
  return true;
}

DataKey TestKey(uint8_t fill) {
  DataKey key;
  key.fill(fill);
  return key;
}

SegmentId TestId(uint8_t fill) {
  SegmentId id;
  id.fill(fill);
  return id;
}

}  // namespace kvasir::kv

#include "tests/memory/service/test_builder.h"

#include "engine/base/check.h"

namespace kvasir::service {
namespace {

kv::Geometry TestGeometry() {
  kv::Geometry geometry;
  geometry.layers.assign(2, {.kv_heads = 1, .k_width = 4, .v_width = 4, .rotated = 4});
  geometry.ropes.push_back({.base = 10000, .factors = {}});
  return geometry;
}

// Two-byte elements that depend on layer, token and position alone.
std::vector<std::byte> Elements(int layer, int64_t first, const std::vector<int32_t>& tokens) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (int e = 0; e < 4; ++e) {
      const int64_t value = tokens[i] * 131 + (first + static_cast<int64_t>(i)) * 17 + layer + e;
      bytes.push_back(static_cast<std::byte>(value & 0xff));
      bytes.push_back(static_cast<std::byte>(value >> 8 & 0x3b));  // finite halves
    }
  }
  return bytes;
}

}  // namespace

kv::ModelId TestModel(int version) {
  return {base::Sha256(base::AsBytes("test model " + std::to_string(version)))};
}

TestTail::TestTail(int64_t first_position, kv::ModelId model)
    : model_(model), chain_(model), before_last_(model), position_(first_position) {
  chain_.AddTokens(0, std::vector<int32_t>(static_cast<size_t>(first_position), 1));
}

SegmentPtr TestTail::Make(int64_t first, const std::vector<int32_t>& tokens,
                          const base::Digest& parent, int64_t turn) {
  kv::SegmentInfo info{.model_id = model_,
                       .build_id = {"codec=1;path=test;kv=f16;compaction=none"},
                       .context_id = chain_.id(),
                       .parent_id = parent,
                       .first_position = first,
                       .tokens = tokens,
                       .turns = {{turn, 0, static_cast<int32_t>(tokens.size())}}};
  std::vector<kv::HeadSlots> heads;
  for (int layer = 0; layer < 2; ++layer) {
    const std::vector<std::byte> elements = Elements(layer, first, tokens);
    heads.push_back({.slots = static_cast<int32_t>(tokens.size()),
                     .keys = elements,
                     .values = elements,
                     .beta = {},
                     .positions = {}});
  }
  auto segment = kv::KvSegment::Create(TestGeometry(), std::move(info), std::move(heads));
  KVASIR_CHECK(segment.ok());
  return *std::move(segment);
}

SegmentPtr TestTail::Next(int tokens, int64_t turn) {
  before_last_ = chain_;
  last_first_ = position_;
  last_.clear();
  return Longer(tokens, turn);
}

SegmentPtr TestTail::Longer(int more, int64_t turn) {
  for (int i = 0; i < more; ++i) {
    last_.push_back(static_cast<int32_t>((position_ * 7 + turn) % 1000));
    chain_.AddTokens(position_++, std::span(last_).last(1));
  }
  return Make(last_first_, last_, before_last_.id(), turn);
}

base::StatusOr<SegmentPtr> TestBuilder::Build(const kv::BuilderSession& session,
                                              const std::atomic<bool>& cancelled) {
  built.push_back(session);
  if (during_build) KVASIR_RETURN_IF_ERROR(during_build(cancelled));
  if (cancelled) return base::Cancelled("the build was cancelled");
  size_t tokens = 0;
  for (const kv::BuilderTurn& turn : session.turns) {
    tokens += turn.user_text.size() + turn.assistant_text.size();
  }
  return TestTail(kBaseTokens, model).Next(static_cast<int>(tokens), session.turns.back().turn);
}

}  // namespace kvasir::service

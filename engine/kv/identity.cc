#include "engine/kv/identity.h"

namespace kvasir::kv {

ModelId MakeModelId(const base::Digest& weights, const base::Digest& tokenizer,
                    const Geometry& geometry) {
  base::Hasher hasher;
  hasher.AddText("kvasir model 1");
  hasher.Add(weights.bytes);
  hasher.Add(tokenizer.bytes);
  hasher.Add(geometry.Digest().bytes);
  return {hasher.Finish()};
}

BuildId MakeBuildId(int codec_version, std::string_view path, std::string_view kv_type,
                    std::string_view compaction) {
  return {fmt::format("codec={};path={};kv={};compaction={}", codec_version, path, kv_type,
                      compaction)};
}

ContextChain::ContextChain(const ModelId& model) {
  base::Hasher hasher;
  hasher.AddText("kvasir context 1");
  hasher.Add(model.digest.bytes);
  id_ = hasher.Finish();
}

ContextChain& ContextChain::AddTokens(int64_t first_position, std::span<const int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    base::Hasher hasher;
    hasher.Add(id_.bytes);
    hasher.AddText("token");
    hasher.AddInt(first_position + static_cast<int64_t>(i));
    hasher.AddInt(tokens[i]);
    id_ = hasher.Finish();
  }
  return *this;
}

ContextChain& ContextChain::AddMount(const base::Digest& state, int64_t frame, int64_t begin,
                                     int64_t end, const base::Digest& mask) {
  base::Hasher hasher;
  hasher.Add(id_.bytes);
  hasher.AddText("mount");
  hasher.Add(state.bytes);
  for (const int64_t number : {frame, begin, end}) hasher.AddInt(number);
  hasher.Add(mask.bytes);
  id_ = hasher.Finish();
  return *this;
}

}  // namespace kvasir::kv

// Identity: by what a stored state is recognised.
//
// model_id must match or the state is a miss (MODEL_MISMATCH). build_id is recorded; a difference
// schedules a rebuild and is never a miss. context_id says what the tokens of a state attended to;
// content, never names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/kv/geometry.h"

namespace kvasir::kv {

struct ModelId {
  base::Digest digest;
  auto operator<=>(const ModelId&) const = default;
};

// Digest over the weights (digest of the model file's tensor data), the tokenizer and the geometry
// (which holds RoPE).
ModelId MakeModelId(const base::Digest& weights, const base::Digest& tokenizer,
                    const Geometry& geometry);

// How a state was made: "codec=1;path=cpu/1;kv=f16;compaction=none". Keys in this order.
struct BuildId {
  std::string text;
  bool operator==(const BuildId&) const = default;
};
BuildId MakeBuildId(int codec_version, std::string_view path, std::string_view kv_type,
                    std::string_view compaction);

// ContextId: a chain over everything that stands before and inside a state. Equal ids mean that the
// same tokens stood at the same positions behind the same mounts, so states can be exchanged byte
// for byte.
class ContextChain {
 public:
  // The empty context of a model.
  explicit ContextChain(const ModelId& model);
  // The chain after `tokens` at consecutive logical positions from `first_position`. One link a
  // token: however the tokens are split over calls, the id is the same.
  ContextChain& AddTokens(int64_t first_position, std::span<const int32_t> tokens);
  // The chain after a mount: the digest of its state, the frame and logical range it stands at, and
  // the digest of its slot mask (all zero bytes when nothing is masked).
  ContextChain& AddMount(const base::Digest& state, int64_t frame, int64_t begin, int64_t end,
                         const base::Digest& mask);
  const base::Digest& id() const { return id_; }

 private:
  base::Digest id_;
};

}  // namespace kvasir::kv

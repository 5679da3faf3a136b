// StateBuilder: how memory/service and compaction reach the engine without knowing it.
// engine/runtime implements it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/kv/segment.h"
#include "engine/kv/state_capture.h"

namespace kvasir::kv {

// One message of a conversation.
struct BuilderTurn {
  int64_t turn = 0;
  std::string user_text;
  std::string assistant_text;             // as streamed
  std::vector<int32_t> assistant_tokens;  // ids of the reply; empty: tokenize assistant_text
};

enum class BuildUrgency {
  kBackground,  // while no chat turn runs or waits
  kChat,        // a turn waits for it: computed as a part of that turn would be
};

// A conversation to be made into an exact state behind the canonical base.
struct BuilderSession {
  std::string date;                // "2026-12-01": the session's date line
  std::vector<BuilderTurn> turns;  // in order
  BuildUrgency urgency = BuildUrgency::kBackground;
  std::string fairness_key = {};  // of a kChat build: with whose turns it shares
};

class StateBuilder {
 public:
  virtual ~StateBuilder() = default;

  // The model states are made for.
  virtual ModelId model_id() const = 0;
  virtual BuildId build_id() const = 0;
  // Tokens of the canonical base: a memory's first token sits at this position.
  virtual int64_t base_tokens() const = 0;
  virtual int64_t context_tokens_max() const = 0;

  // Prefills [base][date line][turns] and returns the state of what follows the base (local
  // positions from base_tokens()). Blocks until done; a kBackground build yields to chat at layer
  // boundaries; stops soon after *cancelled is true. Errors: Cancelled, InvalidArgument reason
  // CONTEXT_LENGTH_EXCEEDED (says both lengths), ResourceExhausted, Unavailable.
  virtual base::StatusOr<std::shared_ptr<const KvSegment>> Build(
      const BuilderSession& session, const std::atomic<bool>& cancelled) = 0;

  // Puts every cue on its own behind [base][state] and captures what it asks of the state; nothing
  // is generated. In the background, yielding like Build; blocks until done. Errors:
  // InvalidArgument (no cues or more than kCaptureCuesMax; `state` not exact or not built right
  // behind the base; reason MODEL_MISMATCH, CONTEXT_LENGTH_EXCEEDED), ResourceExhausted
  // (kCaptureBytesMax, pages), Cancelled, Unavailable.
  virtual base::StatusOr<StateCapture> Capture(const std::shared_ptr<const KvSegment>& state,
                                               std::span<const CueText> cues,
                                               const std::atomic<bool>& cancelled) = 0;
};

}  // namespace kvasir::kv

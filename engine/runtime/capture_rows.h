// CaptureRows: collects the rows of one cue into a StateCapture; rotated keys of a state.
#pragma once

#include <memory>

#include "engine/kv/segment.h"
#include "engine/kv/state_capture.h"
#include "engine/model/model.h"
#include "engine/runtime/request.h"

namespace kvasir::runtime {

// An empty capture of `rows` rows on `state`, its keys filled in.
kv::StateCapture MakeCapture(const model::Model& model, const kv::KvSegment& state, int64_t rows);
// Bytes that MakeCapture takes.
size_t CaptureBytes(const model::Model& model, int64_t slots, int64_t rows);

// Writes rows from `first_row` on, of tokens from `first_position` on. `capture` must outlive it.
class CaptureRows final : public QueryObserver {
 public:
  CaptureRows(const model::Model& model, kv::StateCapture* capture, int64_t first_row,
              int64_t first_position)
      : model_(model), capture_(capture), first_row_(first_row), first_position_(first_position) {}
  void OnQueries(int layer, int64_t first_position, int64_t rows, const float* queries,
                 const float* log_sum_exp) override;

 private:
  const model::Model& model_;
  kv::StateCapture* const capture_;
  const int64_t first_row_, first_position_;
};

}  // namespace kvasir::runtime

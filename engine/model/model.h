// Model: weights and forward pass of a decoder-only transformer (architectures llama and qwen2)
// over a ragged batch.
//
// A row's logits depend only on the tokens and states its sequence sees; never on other rows of the
// batch, on how a prompt was cut into chunks, or on the number of threads (docs/architecture.md,
// numeric definition). Threads: Forward from one thread at a time; the rest is immutable after
// Load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/kernels/backend.h"
#include "engine/kv/geometry.h"
#include "engine/kv/identity.h"
#include "engine/kv/segment.h"
#include "engine/model/config.h"
#include "engine/model/resident_segment.h"
#include "engine/model/tail.h"

namespace kvasir::model {

// One sequence's part of a step: `tokens` are appended to `tail` (at its end, inside reserved
// room).
struct SequenceStep {
  std::span<const int32_t> tokens;
  Tail* tail = nullptr;
  std::span<const Mount> mounts;  // all end at or before tail->first_position()
  int64_t logits_rows = 0;        // logits are wanted for the last so many tokens
};

// Sees intermediate values of a forward pass (evaluation, tests). Pointers are valid during the
// call only.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  // Residual stream x [rows, n_embd]: layer 0 .. n_layer − 1 before that layer; n_layer after the
  // last.
  virtual void OnResidual(int /*layer*/, const float* /*x*/, int64_t /*rows*/) {}
  // Asked once per step; queries and log-sum-exps are made for who wants them.
  virtual bool WantsQueries() const { return false; }
  // Queries [rows, n_head, key_length] before rotation and the log-sum-exp of what each saw [rows,
  // n_head] (AttendParams::log_sum_exp).
  virtual void OnQueries(int /*layer*/, const float* /*queries*/, const float* /*log_sum_exp*/,
                         int64_t /*rows*/) {}
};

class Model {
 public:
  struct Options {
    int64_t rows_max = 512;        // rows of one step
    int64_t logits_rows_max = 64;  // rows of one step that need logits
    int64_t positions_max = 0;     // logical positions; 0: the length the model was trained for
  };

  // Loads all weights of `file` into `backend`, which must outlive the model; the file may be
  // closed afterwards except for the token embedding, which stays mapped: `file` must outlive the
  // model too. `progress` (may be null) is called with the share done in [0, 1]. Errors: those of
  // Config::Read; Unimplemented (a tensor type or shape the backend cannot multiply).
  static base::StatusOr<std::unique_ptr<Model>> Load(const gguf::File& file,
                                                     kernels::Backend& backend,
                                                     const Options& options,
                                                     const std::function<void(double)>& progress);
  ~Model();

  const Config& config() const;
  const Options& options() const;
  const kv::Geometry& geometry() const;
  const kernels::KvLayout& layout() const;
  const kernels::RopeTable& rope() const;
  kernels::Backend& backend() const;
  kv::ElementType element_type() const;
  // Bytes of weights read for one token (batch 1, logits wanted).
  size_t weight_bytes_per_token() const;

  // Runs one step. On success every tail is advanced by its tokens and `logits` [sum of
  // logits_rows, n_vocab] (host memory) is filled, sequences in order, rows in order. `keep_going`
  // (may be null) is asked between layers; when it says no, the step is dropped: tails are as
  // before. Errors: InvalidArgument (token id out of range), Cancelled (keep_going said no).
  // REQUIRES: rows within the options; tails reserved.
  base::Status Forward(std::span<const SequenceStep> steps, std::span<float> logits,
                       const std::function<bool()>& keep_going = nullptr,
                       ForwardObserver* observer = nullptr);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// SHA-256 over names, types, shapes and data of all tensors, in file order. Reads the whole file.
// and "general.".
base::Digest WeightsDigest(const gguf::File& file);

}  // namespace kvasir::model

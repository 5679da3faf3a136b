// Weights: the tensors of a model in a backend's layout, and the memory one step works in. Internal
// to engine/model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/kernels/backend.h"
#include "engine/model/config.h"

namespace kvasir::model {

using MatrixPtr = std::unique_ptr<kernels::Matrix>;
using BufferPtr = std::unique_ptr<kernels::Buffer>;

// [rows N, columns K]; biases are null where the model has none.
struct LayerWeights {
  BufferPtr attn_norm;               // [n_embd]
  MatrixPtr q;                       // [n_head * key_length, n_embd]
  MatrixPtr k;                       // [n_kv_heads * key_length, n_embd]
  MatrixPtr v;                       // [n_kv_heads * value_length, n_embd]
  BufferPtr q_bias, k_bias, v_bias;  // [rows of q, k, v]
  MatrixPtr attn_output;             // [n_embd, n_head * value_length]
  BufferPtr ffn_norm;                // [n_embd]
  MatrixPtr gate, up;                // [n_ff, n_embd]
  MatrixPtr down;                    // [n_embd, n_ff]

  size_t bytes() const;
};

struct Weights {
  const gguf::Tensor* embedding = nullptr;  // [n_vocab, n_embd], stays in the mapped file
  std::vector<LayerWeights> layers;
  BufferPtr output_norm;  // [n_embd]
  MatrixPtr output;       // [n_vocab, n_embd]

  // Errors: Unimplemented (a type or shape the backend cannot multiply). `progress` may be null.
  static base::StatusOr<Weights> Load(const gguf::File& file, const Config& config,
                                      kernels::Backend& backend,
                                      const std::function<void(double)>& progress);
};

// Buffers of one step, [rows_max, …] each.
struct StepMemory {
  BufferPtr x;                                  // residual stream [rows_max, n_embd]
  BufferPtr q, k, v;                            // [rows_max, heads * width]
  BufferPtr attention;                          // [rows_max, n_head * value_length]
  BufferPtr log_sum_exp;                        // [rows_max, n_head]
  BufferPtr gate, up;                           // [rows_max, n_ff]
  BufferPtr logits;                             // [logits_rows_max, n_vocab]
  std::unique_ptr<kernels::Activations> input;  // of the linear operations

  static StepMemory Make(const Config& config, kernels::Backend& backend, int64_t rows_max,
                         int64_t logits_rows_max);
};

}  // namespace kvasir::model

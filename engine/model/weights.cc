#include "engine/model/weights.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/base/check.h"

namespace kvasir::model {
namespace {

// Loads the tensors of one file, in the backend's layout, and lets go of the file's pages behind
// itself.
class Loader {
 public:
  Loader(const gguf::File& file, kernels::Backend& backend,
         const std::function<void(double)>& progress)
      : file_(file), backend_(backend), progress_(progress) {
    for (const gguf::Tensor& tensor : file.tensors()) bytes_total_ += tensor.data.size();
  }

  base::Status Matrix(const std::string& name, MatrixPtr& out) {
    const gguf::Tensor& tensor = Find(name);
    KVASIR_ASSIGN_OR_RETURN(out, backend_.LoadMatrix(tensor));
    Done(tensor);
    return base::OkStatus();
  }

  void Floats(const std::string& name, BufferPtr& out) {
    const gguf::Tensor& tensor = Find(name);
    out = backend_.LoadFloats(tensor);
    Done(tensor);
  }

 private:
  // Config::FromFile has checked that every tensor is there.
  const gguf::Tensor& Find(const std::string& name) const {
    const gguf::Tensor* tensor = file_.FindTensor(name);
    KVASIR_CHECK(tensor != nullptr);
    return *tensor;
  }

  void Done(const gguf::Tensor& tensor) {
    bytes_done_ += tensor.data.size();
    file_.Release(tensor);
    if (progress_) progress_(static_cast<double>(bytes_done_) / static_cast<double>(bytes_total_));
  }

  const gguf::File& file_;
  kernels::Backend& backend_;
  const std::function<void(double)>& progress_;
  size_t bytes_total_ = 0;
  size_t bytes_done_ = 0;
};

base::Status LoadLayer(const std::string& prefix, const Config& config, Loader& loader,
                       LayerWeights& out) {
  loader.Floats(prefix + "attn_norm.weight", out.attn_norm);
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "attn_q.weight", out.q));
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "attn_k.weight", out.k));
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "attn_v.weight", out.v));
  if (config.qkv_bias) {
    loader.Floats(prefix + "attn_q.bias", out.q_bias);
    loader.Floats(prefix + "attn_k.bias", out.k_bias);
    loader.Floats(prefix + "attn_v.bias", out.v_bias);
  }
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "attn_output.weight", out.attn_output));
  loader.Floats(prefix + "ffn_norm.weight", out.ffn_norm);
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "ffn_gate.weight", out.gate));
  KVASIR_RETURN_IF_ERROR(loader.Matrix(prefix + "ffn_up.weight", out.up));
  return loader.Matrix(prefix + "ffn_down.weight", out.down);
}

}  // namespace

size_t LayerWeights::bytes() const {
  size_t bytes = 0;
  for (const MatrixPtr* matrix : {&q, &k, &v, &attn_output, &gate, &up, &down})
    bytes += (*matrix)->bytes();
  return bytes;
}

base::StatusOr<Weights> Weights::Load(const gguf::File& file, const Config& config,
                                      kernels::Backend& backend,
                                      const std::function<void(double)>& progress) {
  Weights weights;
  Loader loader(file, backend, progress);
  weights.embedding = file.FindTensor("token_embd.weight");
  KVASIR_CHECK(weights.embedding != nullptr);
  weights.layers.resize(static_cast<size_t>(config.n_layer));
  for (size_t layer = 0; layer < weights.layers.size(); ++layer) {
    KVASIR_RETURN_IF_ERROR(
        LoadLayer("blk." + std::to_string(layer) + ".", config, loader, weights.layers[layer]));
  }
  loader.Floats("output_norm.weight", weights.output_norm);
  KVASIR_RETURN_IF_ERROR(
      loader.Matrix(config.tied_output ? "token_embd.weight" : "output.weight", weights.output));
  return weights;
}

StepMemory StepMemory::Make(const Config& config, kernels::Backend& backend, int64_t rows_max,
                            int64_t logits_rows_max) {
  const auto floats = [&](int64_t rows, int64_t columns) {
    return backend.Allocate(static_cast<size_t>(rows * columns) * sizeof(float));
  };
  StepMemory memory;
  memory.x = floats(rows_max, config.n_embd);
  memory.q = floats(rows_max, config.n_head * config.key_length);
  memory.k = floats(rows_max, config.n_kv_heads * config.key_length);
  memory.v = floats(rows_max, config.n_kv_heads * config.value_length);
  memory.attention = floats(rows_max, config.n_head * config.value_length);
  memory.log_sum_exp = floats(rows_max, config.n_head);
  memory.gate = floats(rows_max, config.n_ff);
  memory.up = floats(rows_max, config.n_ff);
  memory.logits = floats(logits_rows_max, config.n_vocab);
  memory.input = backend.AllocateActivations(
      rows_max, std::max({config.n_embd, config.n_ff, config.n_head * config.value_length}));
  return memory;
}

}  // namespace kvasir::model

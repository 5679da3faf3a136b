#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <set>

#include "engine/gguf/quote.h"
#include "engine/model/checks.h"

namespace kvasir::model {
namespace {

using base::Status;
using gguf::File;
using gguf::Quote;
using gguf::Tensor;

constexpr std::string_view kRopeFactors = "rope_freqs.weight";

Status Missing(std::string_view name) {
  return base::InvalidArgument("tensor {} is missing from the model file", Quote(name));
}

// Shape, and F32 for vectors.
Status CheckTensor(const Tensor& tensor, const ExpectedTensor& expected) {
  if (tensor.dims != expected.dims) {
    return base::InvalidArgument("tensor {} has shape [{}], [{}] is expected", Quote(expected.name),
                                 fmt::join(tensor.dims, ", "), fmt::join(expected.dims, ", "));
  }
  if (expected.dims.size() == 1 && tensor.type != gguf::TensorType::kF32) {
    return base::InvalidArgument("tensor {} is of type {}, F32 is needed for a vector",
                                 Quote(expected.name), gguf::Info(tensor.type).name);
  }
  return base::OkStatus();
}

Status ReadRopeFactors(const File& file, Config& config) {
  const Tensor* tensor = file.FindTensor(kRopeFactors);
  if (tensor == nullptr) return base::OkStatus();
  KVASIR_RETURN_IF_ERROR(CheckTensor(*tensor, {std::string(kRopeFactors), {config.n_rot / 2}}));
  config.rope_factors.resize(static_cast<size_t>(config.n_rot / 2));
  std::memcpy(config.rope_factors.data(), tensor->data.data(), tensor->data.size());
  for (size_t i = 0; i < config.rope_factors.size(); ++i) {
    const float factor = config.rope_factors[i];
    if (!std::isfinite(factor) || factor <= 0) {
      return base::InvalidArgument("tensor {} has {} at {}, finite values above 0 are needed",
                                   Quote(kRopeFactors), factor, i);
    }
  }
  return base::OkStatus();
}

}  // namespace

Status ReadTensorFacts(const File& file, Config& config) {
  const Tensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding == nullptr) return Missing("token_embd.weight");
  if (embedding->rows() > INT32_MAX) {
    return base::InvalidArgument("tensor 'token_embd.weight' has {} rows, at most {} are allowed",
                                 embedding->rows(), INT32_MAX);
  }
  config.n_vocab = embedding->rows();
  config.tied_output = file.FindTensor("output.weight") == nullptr;
  config.qkv_bias = file.FindTensor("blk.0.attn_q.bias") != nullptr;
  return ReadRopeFactors(file, config);
}

std::vector<ExpectedTensor> ExpectedTensors(const Config& config) {
  const int64_t q_width = config.n_head * config.key_length;
  const int64_t k_width = config.n_kv_heads * config.key_length;
  const int64_t v_width = config.n_kv_heads * config.value_length;
  const int64_t out_width = config.n_head * config.value_length;
  std::vector<ExpectedTensor> tensors = {{"token_embd.weight", {config.n_embd, config.n_vocab}}};
  if (!config.rope_factors.empty()) {
    tensors.push_back({std::string(kRopeFactors), {config.n_rot / 2}});
  }
  for (int64_t layer = 0; layer < config.n_layer; ++layer) {
    const auto add = [&](std::string_view name, std::vector<int64_t> dims) {
      tensors.push_back({fmt::format("blk.{}.{}", layer, name), std::move(dims)});
    };
    add("attn_norm.weight", {config.n_embd});
    add("attn_q.weight", {config.n_embd, q_width});
    add("attn_k.weight", {config.n_embd, k_width});
    add("attn_v.weight", {config.n_embd, v_width});
    if (config.qkv_bias) {
      add("attn_q.bias", {q_width});
      add("attn_k.bias", {k_width});
      add("attn_v.bias", {v_width});
    }
    add("attn_output.weight", {out_width, config.n_embd});
    add("ffn_norm.weight", {config.n_embd});
    add("ffn_gate.weight", {config.n_embd, config.n_ff});
    add("ffn_up.weight", {config.n_embd, config.n_ff});
    add("ffn_down.weight", {config.n_ff, config.n_embd});
  }
  tensors.push_back({"output_norm.weight", {config.n_embd}});
  if (!config.tied_output) tensors.push_back({"output.weight", {config.n_embd, config.n_vocab}});
  return tensors;
}

Status CheckTensors(const File& file, const Config& config) {
  std::set<std::string_view> known;
  const std::vector<ExpectedTensor> expected = ExpectedTensors(config);
  for (const ExpectedTensor& tensor : expected) {
    const Tensor* found = file.FindTensor(tensor.name);
    if (found == nullptr) return Missing(tensor.name);
    KVASIR_RETURN_IF_ERROR(CheckTensor(*found, tensor));
    known.insert(tensor.name);
  }
  for (const Tensor& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) {
      return base::Unimplemented("tensor {} has no place in a {} model of {} layers",
                                 Quote(tensor.name), Name(config.architecture), config.n_layer);
    }
  }
  return base::OkStatus();
}

}  // namespace kvasir::model

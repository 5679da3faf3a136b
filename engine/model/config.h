// Config: the hyper-parameters of a model, read from its GGUF file and checked against its tensors,
// so that whoever builds the model from it needs no check of its own.
//
// Supported: architectures llama and qwen2. What would make the model compute something else
// (other RoPE scalings, experts, sliding windows, tensors with no place here) is refused by name.
// Source: GGUF specification, "standardized key-value pairs" and "standardized tensor names".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/gguf/file.h"

namespace kvasir::model {

enum class Architecture { kLlama, kQwen2 };

// "llama", "qwen2": general.architecture and the prefix of the model's keys.
std::string_view Name(Architecture architecture);

struct Config {
  Architecture architecture = Architecture::kLlama;

  int64_t n_layer = 0;
  int64_t n_embd = 0;        // width of the residual stream
  int64_t n_ff = 0;          // width of the feed-forward layer
  int64_t n_head = 0;        // query heads; a multiple of n_kv_heads
  int64_t n_kv_heads = 0;    // key/value heads
  int64_t key_length = 0;    // elements of a key or query head
  int64_t value_length = 0;  // elements of a value head
  int64_t n_vocab = 0;       // rows of the embedding = tokens of the vocabulary
  int64_t n_ctx_train = 0;   // positions the model was trained on, at most kContextMax

  double rms_eps = 0;  // finite, > 0
  int64_t n_rot = 0;   // leading elements of a head that RoPE turns; even, ≤ key_length
  bool rope_interleaved = false;    // pairs (2i, 2i + 1) when true, else (i, i + n_rot / 2)
  double rope_base = 10000.0;       // finite, > 0
  double rope_scale = 1.0;          // positions are multiplied by it (linear scaling: 1 / factor)
  std::vector<float> rope_factors;  // empty or [n_rot / 2]: each frequency is divided by it; > 0

  bool tied_output = false;  // no output.weight: the logits use token_embd.weight
  bool qkv_bias = false;     // every layer has attn_q.bias, attn_k.bias and attn_v.bias

  std::optional<int32_t> bos_id;  // in [0, n_vocab), as is eos_id
  std::optional<int32_t> eos_id;

  // Reads and checks everything: keys, the tensors of ExpectedTensors and that there are no others,
  // the lengths and element types of the vocabulary's arrays.
  // Errors: InvalidArgument (also for a missing key or tensor), Unimplemented (architecture, RoPE
  //         scaling or feature not supported); the message names the key or tensor and both values.
  static base::StatusOr<Config> FromFile(const gguf::File& file);
};

// Limits on hyper-parameters: products of any three fit 64 bits.
inline constexpr int64_t kLayersMax = 1024;
inline constexpr int64_t kHeadsMax = 1024;
inline constexpr int64_t kHeadLengthMax = 1024;
inline constexpr int64_t kWidthMax = int64_t{1} << 20;    // n_embd, n_ff
inline constexpr int64_t kContextMax = int64_t{1} << 24;  // positions

// A tensor the model has. Vectors (one dimension) are F32; matrices are of any supported type.
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> dims;  // as in the file: columns (input width) first
};

// All tensors of a model of this shape, in the order of the forward pass.
std::vector<ExpectedTensor> ExpectedTensors(const Config& config);

}  // namespace kvasir::model

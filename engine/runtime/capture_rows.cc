#include "engine/runtime/capture_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/gguf/float16.h"

namespace kvasir::runtime {
namespace {

// Element i of `bytes`.
float ElementAt(kv::ElementType type, const std::byte* bytes, int64_t i) {
  if (type == kv::ElementType::kF32) {
    float value = 0;
    std::memcpy(&value, bytes + i * 4, sizeof(value));
    return value;
  }
  uint16_t half = 0;
  std::memcpy(&half, bytes + i * 2, sizeof(half));
  return gguf::HalfToFloat(half);
}

std::vector<float> RotatedKeys(const model::Model& model, const kv::KvSegment& state, int layer,
                               int kv_head) {
  const kv::Stream& stream = state.geometry().layers[static_cast<size_t>(layer)];
  const kv::HeadSlots& slots = state.head(layer, kv_head);
  const int width = stream.k_width;
  std::vector<float> keys(static_cast<size_t>(slots.slots) * static_cast<size_t>(width));
  for (int32_t slot = 0; slot < slots.slots; ++slot) {
    float* const key = keys.data() + int64_t{slot} * width;
    for (int i = 0; i < width; ++i) {
      key[i] = ElementAt(state.info().element_type, slots.keys.data(), int64_t{slot} * width + i);
    }
    model.rope().Rotate(key, width, state.info().first_position + slot, key);
  }
  return keys;
}

}  // namespace

size_t CaptureBytes(const model::Model& model, int64_t slots, int64_t rows) {
  const model::Config& config = model.config();
  const int64_t floats = config.n_kv_heads * slots * config.key_length +
                         rows * config.n_head * (config.key_length + 1);
  return static_cast<size_t>(config.n_layer * floats) * sizeof(float);
}

kv::StateCapture MakeCapture(const model::Model& model, const kv::KvSegment& state, int64_t rows) {
  const model::Config& config = model.config();
  kv::StateCapture capture;
  capture.rows = rows;
  capture.slots = state.logical_tokens();
  capture.q_heads = static_cast<int32_t>(config.n_head);
  capture.scale = 1.0 / std::sqrt(static_cast<double>(config.key_length));
  capture.layers.resize(static_cast<size_t>(config.n_layer));
  for (int layer = 0; layer < config.n_layer; ++layer) {
    kv::LayerCapture& to = capture.layers[static_cast<size_t>(layer)];
    for (int head = 0; head < config.n_kv_heads; ++head) {
      to.keys.push_back(RotatedKeys(model, state, layer, head));
    }
    to.queries.resize(static_cast<size_t>(rows * config.n_head * config.key_length));
    to.log_sum_exp.resize(static_cast<size_t>(rows * config.n_head));
  }
  return capture;
}

void CaptureRows::OnQueries(int layer, int64_t first_position, int64_t rows, const float* queries,
                            const float* log_sum_exp) {
  const int64_t heads = model_.config().n_head, width = model_.config().key_length;
  kv::LayerCapture& to = capture_->layers[static_cast<size_t>(layer)];
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = first_position + row;
    const int64_t out = first_row_ + position - first_position_;
    std::copy_n(log_sum_exp + row * heads, heads, to.log_sum_exp.begin() + out * heads);
    for (int64_t head = 0; head < heads; ++head) {
      model_.rope().Rotate(queries + (row * heads + head) * width, static_cast<int>(width),
                           position, to.queries.data() + (out * heads + head) * width);
    }
  }
}

}  // namespace kvasir::runtime

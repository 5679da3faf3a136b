#include "engine/kernels/reference/reference_backend.h"

#include <cmath>
#include <cstring>
#include <new>
#include <vector>

#include "engine/base/check.h"
#include "engine/gguf/types.h"

namespace kvasir::kernels {
namespace {

struct AlignedDelete {
  void operator()(std::byte* bytes) const { ::operator delete[](bytes, std::align_val_t{64}); }
};

class ReferenceBuffer final : public Buffer {
 public:
  explicit ReferenceBuffer(size_t bytes)
      : bytes_(bytes), data_(new (std::align_val_t{64}) std::byte[bytes]()) {}
  std::byte* data() override { return data_.get(); }
  size_t bytes() const override { return bytes_; }

 private:
  const size_t bytes_;
  std::unique_ptr<std::byte[], AlignedDelete> data_;
};

struct ReferenceMatrix final : public Matrix {
  int64_t rows() const override { return rows_count; }
  int64_t columns() const override { return columns_count; }
  size_t bytes() const override { return values.size() * sizeof(float); }

  int64_t rows_count = 0;
  int64_t columns_count = 0;
  std::vector<float> values;  // [rows, columns]
};

struct ReferenceActivations final : public Activations {
  int64_t rows_max() const override { return rows_limit; }
  int64_t columns_max() const override { return columns_limit; }
  void SetShape(int64_t new_rows, int64_t new_columns) {
    KVASIR_CHECK(new_rows <= rows_limit && new_columns <= columns_limit);
    rows = new_rows;
    columns = new_columns;
    values.resize(rows * columns);
  }

  int64_t rows_limit = 0;
  int64_t columns_limit = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;  // [rows, columns]
};

std::vector<float> Dequantized(const gguf::Tensor& tensor) {
  std::vector<float> values(tensor.elements());
  gguf::Dequantize(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  return values;
}

double Apply(Gate gate, double a) {
  if (gate == Gate::kSilu) return a / (1 + std::exp(-a));
  // a/2 · (1 + tanh u), without the cancellation.
  const double u = std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a);
  return a / (1 + std::exp(-2 * u));
}

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(base::ThreadPool& pool) : pool_(pool) {}

  std::string_view name() const override { return "reference"; }
  KvType kv_type() const override { return KvType::kF32; }
  std::unique_ptr<Buffer> Allocate(size_t bytes) override {
    return std::make_unique<ReferenceBuffer>(bytes);
  }
  void Zero(std::byte* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void Download(const std::byte* data, size_t bytes, std::byte* out) override {
    std::memcpy(out, data, bytes);
  }
  std::unique_ptr<Activations> AllocateActivations(int64_t rows_max, int64_t columns_max) override {
    auto activations = std::make_unique<ReferenceActivations>();
    activations->rows_limit = rows_max;
    activations->columns_limit = columns_max;
    return activations;
  }
  base::StatusOr<std::unique_ptr<Matrix>> LoadMatrix(const gguf::Tensor& tensor) override {
    if (tensor.dims.size() != 2) {
      return base::InvalidArgument("tensor {}: {} dimensions, a matrix has 2", tensor.name,
                                   tensor.dims.size());
    }
    auto matrix = std::make_unique<ReferenceMatrix>();
    matrix->rows_count = tensor.rows();
    matrix->columns_count = tensor.columns();
    matrix->values = Dequantized(tensor);
    return matrix;
  }
  std::unique_ptr<Buffer> LoadFloats(const gguf::Tensor& tensor) override {
    auto buffer = Allocate(tensor.elements() * sizeof(float));
    gguf::Dequantize(tensor.type, tensor.data.data(), tensor.elements(), buffer->floats());
    return buffer;
  }

  void Embed(const gguf::Tensor& table, const EmbedParams& params) override;
  void Norm(const NormParams& params, Activations& out) override;
  void Prepare(const float* x, int64_t rows, int64_t columns, Activations& out) override {
    auto& activations = static_cast<ReferenceActivations&>(out);
    activations.SetShape(rows, columns);
    std::memcpy(activations.values.data(), x, rows * columns * sizeof(float));
  }
  void GatedActivation(Gate gate, const float* a, const float* b, int64_t rows, int64_t columns,
                       Activations& out) override {
    auto& activations = static_cast<ReferenceActivations&>(out);
    activations.SetShape(rows, columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      activations.values[i] = static_cast<float>(Apply(gate, a[i]) * b[i]);
    }
  }
  void Linear(const Activations& in, std::span<const LinearTask> tasks) override;
  void Append(const AppendParams& params) override;
  void Attend(const AttendParams& params) override { reference::Attend(pool_, params); }
  void Mount(const MountParams& params) override;
  void Extract(const ExtractParams& params) override;

 private:
  base::ThreadPool& pool_;
};

void ReferenceBackend::Embed(const gguf::Tensor& table, const EmbedParams& params) {
  const gguf::TypeInfo& info = gguf::Info(table.type);
  const int64_t columns = table.columns();
  const int64_t row_bytes = columns / info.block_elements * info.block_bytes;
  for (size_t row = 0; row < params.tokens.size(); ++row) {
    const int64_t token = params.tokens[row];
    KVASIR_CHECK(token >= 0 && token < table.rows());
    float* out = params.out + row * columns;
    gguf::Dequantize(table.type, table.data.data() + token * row_bytes, columns, out);
    for (int64_t i = 0; i < columns; ++i) out[i] *= params.scale;
  }
}

void ReferenceBackend::Norm(const NormParams& params, Activations& out) {
  auto& activations = static_cast<ReferenceActivations&>(out);
  activations.SetShape(static_cast<int64_t>(params.rows.size()), params.columns);
  for (size_t row = 0; row < params.rows.size(); ++row) {
    const float* x = params.x + params.rows[row] * params.columns;
    double squares = 0;
    for (int64_t i = 0; i < params.columns; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(params.columns) + params.eps);
    for (int64_t i = 0; i < params.columns; ++i) {
      activations.values[row * params.columns + i] =
          static_cast<float>(x[i] * factor * params.weight[i]);
    }
  }
}

void ReferenceBackend::Linear(const Activations& in, std::span<const LinearTask> tasks) {
  const auto& x = static_cast<const ReferenceActivations&>(in);
  for (const LinearTask& task : tasks) {
    const auto& weight = static_cast<const ReferenceMatrix&>(*task.weight);
    KVASIR_CHECK(weight.columns() == x.columns);
    pool_.ParallelFor(weight.rows(), [&](int64_t n, int) {
      const float* w = weight.values.data() + n * x.columns;
      for (int64_t row = 0; row < x.rows; ++row) {
        double sum = 0;
        for (int64_t k = 0; k < x.columns; ++k) {
          sum += static_cast<double>(w[k]) * x.values[row * x.columns + k];
        }
        if (task.bias != nullptr) sum += task.bias[n];
        float& out = task.out[row * task.out_stride + n];
        out = static_cast<float>(task.add ? sum + out : sum);
      }
    });
  }
}

// One slot of a page: the key rotated at local position `m`, its value, and the raw key where there
// is room for it.
struct SlotPlace {
  const KvLayout* layout = nullptr;
  int layer = 0;
  int kv_head = 0;
  std::byte* page = nullptr;
  int64_t m = 0;
};

void WriteSlot(const SlotPlace& place, const RopeTable& rope, const float* key,
               const float* value) {
  const KvLayout& layout = *place.layout;
  const LayerStreams& streams = layout.layer(place.layer);
  const int64_t slot = place.m % kPageSlots;
  std::vector<float> rotated(key, key + streams.k_width);
  if (rope.rotated() != 0) rope.Rotate(key, streams.k_width, place.m, rotated.data());
  auto* keys =
      reinterpret_cast<float*>(place.page + layout.keys_offset(place.layer, place.kv_head));
  auto* values =
      reinterpret_cast<float*>(place.page + layout.values_offset(place.layer, place.kv_head));
  for (int d = 0; d < streams.k_width; ++d) keys[d * kPageSlots + slot] = rotated[d];
  for (int d = 0; d < streams.v_width; ++d) {
    values[slot * layout.v_stride(place.layer) + d] = value[d];
  }
}

void ReferenceBackend::Append(const AppendParams& params) {
  const KvLayout& layout = *params.layout;
  const LayerStreams& streams = layout.layer(params.layer);
  for (const SequenceRows& sequence : params.sequences) {
    for (int64_t row = 0; row < sequence.rows; ++row) {
      const int64_t m = sequence.first_position + row;
      std::byte* page = sequence.tail_pages[m / kPageSlots - sequence.tail_page_first];
      for (int head = 0; head < streams.kv_heads; ++head) {
        const float* key =
            params.k + (sequence.first_row + row) * params.k_stride + head * streams.k_width;
        const float* value =
            params.v + (sequence.first_row + row) * params.v_stride + head * streams.v_width;
        WriteSlot({&layout, params.layer, head, page, m}, *params.rope, key, value);
        std::memcpy(page + layout.raw_offset(params.layer, head) +
                        m % kPageSlots * streams.k_width * sizeof(float),
                    key, streams.k_width * sizeof(float));
      }
    }
  }
}

void ReferenceBackend::Mount(const MountParams& params) {
  const LayerStreams& streams = params.layout->layer(params.layer);
  const auto* keys = reinterpret_cast<const float*>(params.raw_keys);
  const auto* values = reinterpret_cast<const float*>(params.values);
  for (int64_t i = 0; i < params.slots; ++i) {
    const int64_t m = params.first_local + i;
    std::byte* page = params.pages[m / kPageSlots - params.page_first];
    WriteSlot({params.layout, params.layer, params.kv_head, page, m}, *params.rope,
              keys + i * streams.k_width, values + i * streams.v_width);
    if (params.keep_raw) {
      std::memcpy(page + params.layout->raw_offset(params.layer, params.kv_head) +
                      m % kPageSlots * streams.k_width * sizeof(float),
                  keys + i * streams.k_width, streams.k_width * sizeof(float));
    }
  }
}

void ReferenceBackend::Extract(const ExtractParams& params) {
  const KvLayout& layout = *params.layout;
  const LayerStreams& streams = layout.layer(params.layer);
  auto* keys = reinterpret_cast<float*>(params.raw_keys);
  auto* values = reinterpret_cast<float*>(params.values);
  for (int64_t i = 0; i < params.slots; ++i) {
    const int64_t local = params.first_local + i;
    const std::byte* page = params.pages[local / kPageSlots - params.page_first];
    const int64_t slot = local % kPageSlots;
    const auto* raw =
        reinterpret_cast<const float*>(page + layout.raw_offset(params.layer, params.kv_head));
    const auto* from =
        reinterpret_cast<const float*>(page + layout.values_offset(params.layer, params.kv_head));
    for (int d = 0; d < streams.k_width; ++d) {
      keys[i * streams.k_width + d] = raw[slot * streams.k_width + d];
    }
    for (int d = 0; d < streams.v_width; ++d) {
      values[i * streams.v_width + d] = from[slot * layout.v_stride(params.layer) + d];
    }
  }
}

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(base::ThreadPool& pool) {
  return std::make_unique<ReferenceBackend>(pool);
}

}  // namespace kvasir::kernels

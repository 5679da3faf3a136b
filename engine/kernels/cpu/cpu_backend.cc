#include "engine/kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/base/check.h"
#include "engine/gguf/types.h"
#include "engine/kernels/cpu/attention.h"
#include "engine/kernels/cpu/cpu_backend_parts.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/kernels/cpu/kv_pages.h"
#include "engine/kernels/cpu/linear/linear.h"

namespace kvasir::kernels {
namespace cpu {
namespace {

class CpuBuffer final : public Buffer {
 public:
  explicit CpuBuffer(size_t bytes) : memory_(bytes) {
    KVASIR_CHECK(bytes == 0 || memory_.data() != nullptr);
  }
  std::byte* data() override { return reinterpret_cast<std::byte*>(memory_.data()); }
  size_t bytes() const override { return memory_.size(); }

 private:
  linear::AlignedBytes memory_;
};

class CpuActivations final : public Activations {
 public:
  CpuActivations(int64_t rows_max, int64_t columns_max, Precision precision)
      : rows_max_(rows_max),
        columns_max_(columns_max),
        values_(static_cast<size_t>(rows_max) * columns_max * sizeof(float)) {
    if (precision == Precision::kFast) {
      quantized_ = std::make_unique<QuantizedRows>(rows_max, columns_max);
    }
  }
  int64_t rows_max() const override { return rows_max_; }
  int64_t columns_max() const override { return columns_max_; }

  void SetShape(int64_t rows, int64_t columns) {
    KVASIR_CHECK(rows >= 0 && rows <= rows_max_ && columns > 0 && columns <= columns_max_);
    rows_ = rows;
    columns_ = columns;
    if (quantized_ != nullptr) quantized_->SetColumns(columns);
  }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  float* row(int64_t row) { return values_.floats() + row * columns_; }
  const float* values() const { return const_cast<CpuBuffer&>(values_).floats(); }
  QuantizedRows* quantized() { return quantized_.get(); }
  const QuantizedRows* quantized() const { return quantized_.get(); }

 private:
  const int64_t rows_max_, columns_max_;
  int64_t rows_ = 0, columns_ = 0;
  CpuBuffer values_;                          // [rows, columns]
  std::unique_ptr<QuantizedRows> quantized_;  // nullptr: Precision::kFloat
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::string_view name, const Kernels& kernels, CpuPath linear_path,
             Precision precision, base::ThreadPool& pool)
      : name_(name),
        kernels_(kernels),
        path_(linear_path),
        precision_(precision),
        pool_(pool),
        attention_(kernels, pool) {}

  std::string_view name() const override { return name_; }
  KvType kv_type() const override {
    return precision_ == Precision::kFast ? KvType::kF16 : KvType::kF32;
  }
  std::unique_ptr<Buffer> Allocate(size_t bytes) override {
    return std::make_unique<CpuBuffer>(bytes);
  }
  void Zero(std::byte* data, size_t bytes) override { std::memset(data, 0, bytes); }
  void Download(const std::byte* data, size_t bytes, std::byte* out) override {
    std::memcpy(out, data, bytes);
  }
  std::unique_ptr<Activations> AllocateActivations(int64_t rows_max, int64_t columns_max) override {
    return std::make_unique<CpuActivations>(rows_max, columns_max, precision_);
  }
  base::StatusOr<std::unique_ptr<Matrix>> LoadMatrix(const gguf::Tensor& tensor) override {
    KVASIR_ASSIGN_OR_RETURN(std::unique_ptr<PackedMatrix> matrix,
                            PackedMatrix::Pack(tensor, precision_, pool_));
    return std::unique_ptr<Matrix>(std::move(matrix));
  }
  std::unique_ptr<Buffer> LoadFloats(const gguf::Tensor& tensor) override {
    auto buffer = std::make_unique<CpuBuffer>(tensor.elements() * sizeof(float));
    gguf::Dequantize(tensor.type, tensor.data.data(), tensor.elements(), buffer->floats());
    return buffer;
  }

  void Embed(const gguf::Tensor& table, const EmbedParams& params) override;
  void Norm(const NormParams& params, Activations& out) override;
  void Prepare(const float* x, int64_t rows, int64_t columns, Activations& out) override;
  void GatedActivation(Gate gate, const float* a, const float* b, int64_t rows, int64_t columns,
                       Activations& out) override;
  void Linear(const Activations& in, std::span<const LinearTask> tasks) override;
  void Append(const AppendParams& params) override { AppendRows(kernels_, pool_, params); }
  void Attend(const AttendParams& params) override { attention_.Attend(params); }
  void Mount(const MountParams& params) override { MountSlots(kernels_, pool_, params); }
  void Extract(const ExtractParams& params) override { ExtractSlots(params); }

 private:
  // Fills every row of `out` with make(row, floats of the row), then rounds it to int8.
  template <class Make>
  void FillRows(int64_t rows, int64_t columns, Activations& out, const Make& make) {
    auto& activations = static_cast<CpuActivations&>(out);
    activations.SetShape(rows, columns);
    pool_.ParallelFor(rows, [&](int64_t row, int) {
      float* values = activations.row(row);
      make(row, values);
      if (activations.quantized() != nullptr) {
        QuantizeRow(path_, values, row, *activations.quantized());
      }
    });
  }

  const std::string name_;
  const Kernels& kernels_;
  const CpuPath path_;
  const Precision precision_;
  base::ThreadPool& pool_;
  Attention attention_;
};

void CpuBackend::Embed(const gguf::Tensor& table, const EmbedParams& params) {
  const gguf::TypeInfo& info = gguf::Info(table.type);
  const int64_t columns = table.columns();
  const int64_t row_bytes = columns / info.block_elements * info.block_bytes;
  const auto embed = [&](int64_t row, int) {
    const int64_t token = params.tokens[row];
    KVASIR_CHECK(token >= 0 && token < table.rows());
    float* out = params.out + row * columns;
    gguf::Dequantize(table.type, table.data.data() + token * row_bytes, columns, out);
    if (params.scale == 1.0f) return;
    for (int64_t i = 0; i < columns; ++i) out[i] *= params.scale;
  };
  pool_.ParallelFor(static_cast<int64_t>(params.tokens.size()), embed);
}

void CpuBackend::Norm(const NormParams& params, Activations& out) {
  FillRows(static_cast<int64_t>(params.rows.size()), params.columns, out,
           [&](int64_t row, float* values) {
             kernels_.norm(params.x + params.rows[row] * params.columns, params.weight,
                           params.columns, params.eps, values);
           });
}

void CpuBackend::Prepare(const float* x, int64_t rows, int64_t columns, Activations& out) {
  FillRows(rows, columns, out, [&](int64_t row, float* values) {
    std::memcpy(values, x + row * columns, columns * sizeof(float));
  });
}

void CpuBackend::GatedActivation(Gate gate, const float* a, const float* b, int64_t rows,
                                 int64_t columns, Activations& out) {
  const auto apply = gate == Gate::kSilu ? kernels_.silu : kernels_.gelu_tanh;
  FillRows(rows, columns, out, [&](int64_t row, float* values) {
    apply(a + row * columns, b + row * columns, columns, values);
  });
}

void CpuBackend::Linear(const Activations& in, std::span<const LinearTask> tasks) {
  const auto& activations = static_cast<const CpuActivations&>(in);
  for (const LinearTask& task : tasks) {
    KVASIR_CHECK(task.weight->columns() == activations.columns());
  }
  MultiplyRows(path_, pool_, activations.rows(), activations.values(), activations.columns(),
               activations.quantized(), tasks);
}

}  // namespace

std::unique_ptr<Backend> MakeBackend(std::string_view name, const Kernels& kernels,
                                     CpuPath linear_path, Precision precision,
                                     base::ThreadPool& pool) {
  return std::make_unique<CpuBackend>(name, kernels, linear_path, precision, pool);
}

}  // namespace cpu

std::string_view Name(CpuPath path) {
  switch (path) {
    case CpuPath::kGeneric:
      return "generic";
    case CpuPath::kAvx2:
      return "avx2";
    case CpuPath::kAvx512Vnni:
      return "avx512_vnni";
  }
  return "";
}

std::vector<CpuPath> AvailableCpuPaths() {
  std::vector<CpuPath> paths = {CpuPath::kGeneric};
#if defined(__x86_64__)
  // The compiler's run-time checks cover the operating system's part (XCR0) too.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    return paths;
  }
  paths.push_back(CpuPath::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni")) {
    paths.push_back(CpuPath::kAvx512Vnni);
  }
#endif
  return paths;
}

base::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(CpuPath path, Precision precision,
                                                        base::ThreadPool& pool) {
  const std::vector<CpuPath> available = AvailableCpuPaths();
  if (std::find(available.begin(), available.end(), path) == available.end()) {
    return base::FailedPrecondition("compute path {}: this CPU runs {} at most", Name(path),
                                    Name(available.back()));
  }
  const cpu::Kernels* kernels = &cpu::GenericKernels();
#if defined(__x86_64__)
  if (path == CpuPath::kAvx2) kernels = &cpu::Avx2Kernels();
  if (path == CpuPath::kAvx512Vnni) kernels = &cpu::Avx512Kernels();
#endif
  std::string name(Name(path));
  if (precision == Precision::kFloat) name += "-float";
  return cpu::MakeBackend(name, *kernels, path, precision, pool);
}

}  // namespace kvasir::kernels

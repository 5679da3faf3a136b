// Every other operation of every backend against the reference in double, within computed
// tolerances, on ragged shapes and large values; and bit for bit between the paths.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/gguf/types.h"
#include "engine/kernels/reference/reference_backend.h"
#include "tests/engine/kernels/elements.h"
#include "tests/engine/kernels/subjects.h"

namespace kvasir::kernels::testing {
namespace {

using gguf::TensorType;

constexpr float kUlp = 0x1p-23f;

std::vector<float> Values(uint64_t stream, int64_t count, float size) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = ValueAt(stream, i, 0, size);
  return values;
}

// A tensor of random blocks whose half-precision scales are sane.
struct RandomTensor {
  std::vector<uint8_t> bytes;
  gguf::Tensor tensor;
};
RandomTensor MakeTensor(TensorType type, int64_t columns, int64_t rows) {
  const gguf::TypeInfo& info = gguf::Info(type);
  RandomTensor out;
  const int64_t blocks = rows * columns / info.block_elements;
  out.bytes.resize(blocks * info.block_bytes);
  for (size_t i = 0; i < out.bytes.size(); ++i) {
    out.bytes[i] = static_cast<uint8_t>(ValueAt(7, static_cast<int64_t>(i), 0, 127.0f) + 128);
  }
  const auto set_half = [&](int64_t block, int offset, float value) {
    const auto half = ToElements(KvType::kF16, {value});
    std::memcpy(out.bytes.data() + block * info.block_bytes + offset, half.data(), 2);
  };
  for (int64_t b = 0; b < blocks; ++b) {
    const float scale = 0.001f + 0.01f * static_cast<float>(b % 7);
    switch (type) {
      case TensorType::kF32: {
        const float value = ValueAt(8, b, 0, 0.5f);
        std::memcpy(out.bytes.data() + b * 4, &value, 4);
        break;
      }
      case TensorType::kBF16: {
        const float value = ValueAt(8, b, 0, 0.5f);
        std::memcpy(out.bytes.data() + b * 2, reinterpret_cast<const char*>(&value) + 2, 2);
        break;
      }
      case TensorType::kF16:
        set_half(b, 0, ValueAt(8, b, 0, 0.5f));
        break;
      case TensorType::kQ4_1:
      case TensorType::kQ5_1:
      case TensorType::kQ4_K:
      case TensorType::kQ5_K:
        set_half(b, 0, scale);
        set_half(b, 2, -scale);
        break;
      case TensorType::kQ6_K:
        set_half(b, 208, scale * 0.01f);
        break;
      default:
        set_half(b, 0, scale);
    }
  }
  out.tensor = {.name = "weight", .type = type, .dims = {columns, rows}, .data = out.bytes};
  return out;
}

const TensorType kTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16,
                             TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                             TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K,
                             TensorType::kQ5_K, TensorType::kQ6_K};

// What Linear makes of `in`, through a bias and a residual.
std::vector<float> Product(Backend& backend, const gguf::Tensor& tensor, const Activations& in,
                           int64_t rows, const std::vector<float>& bias) {
  const auto matrix = std::move(backend.LoadMatrix(tensor)).value();
  std::vector<float> out(rows * tensor.rows(), 0.25f);
  const LinearTask task = {.weight = matrix.get(),
                           .bias = bias.data(),
                           .out = out.data(),
                           .out_stride = tensor.rows(),
                           .add = true};
  backend.Linear(in, std::span<const LinearTask>(&task, 1));
  return out;
}

// With weights w and inputs x of K columns: chains of K roundings; on the integer paths every input
// is off by at most half a step of its block, max|x| / 254, and scales by another 2 roundings.
TEST(Operations, LinearAgreesWithTheReferenceForEveryTypeAndShape) {
  base::ThreadPool pool(2);
  const auto reference = MakeReferenceBackend(pool);
  for (const Subject& subject : AllSubjects()) {
    const auto backend = subject.make(pool);
    for (const TensorType type : kTypes) {
      const int64_t columns = gguf::Info(type).block_elements == 256 ? 512 : 32 * 7;
      for (const int64_t n : {1, 17, 48}) {
        const RandomTensor weight = MakeTensor(type, columns, n);
        std::vector<float> w(columns * n);
        gguf::Dequantize(type, weight.bytes.data(), columns * n, w.data());
        const std::vector<float> bias = Values(3, n, 1.0f);
        for (const int64_t rows : {1, 5}) {
          const float size = rows == 1 ? 1.0f : 1e4f;
          const std::vector<float> x = Values(4, rows * columns, size);
          const auto in = backend->AllocateActivations(rows, columns);
          const auto expected_in = reference->AllocateActivations(rows, columns);
          backend->Prepare(x.data(), rows, columns, *in);
          reference->Prepare(x.data(), rows, columns, *expected_in);
          const auto out = Product(*backend, weight.tensor, *in, rows, bias);
          const auto expected = Product(*reference, weight.tensor, *expected_in, rows, bias);
          for (int64_t i = 0; i < rows * n; ++i) {
            double weights = 0;
            for (int64_t k = 0; k < columns; ++k) weights += std::fabs(w[i % n * columns + k]);
            const double step = subject.precision == Precision::kFast ? size / 254 : 0.0;
            // Minimum and scale of a block are each larger than the weights they make up.
            const double tolerance =
                weights * step + (3 * weights + 2) * size * static_cast<double>(columns) * kUlp;
            ASSERT_TRUE(std::fabs(out[i] - expected[i]) <= tolerance)
                << subject.name << " " << gguf::Info(type).name << " [" << n << ", " << columns
                << "] rows " << rows << " output " << i << ": " << out[i] << ", reference "
                << expected[i] << " ± " << tolerance;
          }
        }
      }
    }
  }
}

// Reads activations back through an identity matrix; F32 matrices see the floats on every path.
std::vector<float> ReadBack(Backend& backend, const Activations& in, int64_t rows,
                            int64_t columns) {
  std::vector<float> identity(columns * columns, 0.0f);
  for (int64_t i = 0; i < columns; ++i) identity[i * columns + i] = 1.0f;
  const gguf::Tensor tensor = {
      .name = "identity",
      .type = TensorType::kF32,
      .dims = {columns, columns},
      .data = {reinterpret_cast<const uint8_t*>(identity.data()), identity.size() * 4}};
  const auto matrix = std::move(backend.LoadMatrix(tensor)).value();
  std::vector<float> out(rows * columns);
  const LinearTask task = {.weight = matrix.get(), .out = out.data(), .out_stride = columns};
  backend.Linear(in, std::span<const LinearTask>(&task, 1));
  return out;
}

void ExpectNear(const std::vector<float>& out, const std::vector<float>& expected, double relative,
                double absolute) {
  ASSERT_EQ(out.size(), expected.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const double tolerance = relative * std::fabs(expected[i]) + absolute;
    ASSERT_TRUE(std::fabs(out[i] - expected[i]) <= tolerance)
        << i << ": " << out[i] << ", reference " << expected[i] << " ± " << tolerance;
  }
}

// The sum of squares is a chain of columns/16 roundings and the tree; then mean, eps, root,
// quotient and two products: at most columns/16 + 10 roundings.
TEST(Operations, NormAgreesWithTheReference) {
  base::ThreadPool pool(2);
  const auto reference = MakeReferenceBackend(pool);
  for (const Subject& subject : AllSubjects()) {
    const auto backend = subject.make(pool);
    for (const int64_t columns : {1, 15, 16, 33, 576}) {
      for (const float size : {1e-6f, 1.0f, 1e4f}) {
        SCOPED_TRACE(subject.name + " " + std::to_string(columns) + " " + std::to_string(size));
        const std::vector<float> x = Values(5, 4 * columns, size);
        const std::vector<float> weight = Values(6, columns, 2.0f);
        const std::vector<int32_t> rows = {3, 0, 3};
        const NormParams params = {
            .x = x.data(), .rows = rows, .columns = columns, .weight = weight.data(), .eps = 1e-6f};
        const auto out = backend->AllocateActivations(3, columns);
        const auto expected = reference->AllocateActivations(3, columns);
        backend->Norm(params, *out);
        reference->Norm(params, *expected);
        ExpectNear(ReadBack(*backend, *out, 3, columns),
                   ReadBack(*reference, *expected, 3, columns),
                   static_cast<double>(columns / 16 + 10) * kUlp, 0.0);
      }
    }
  }
}

// exp is good to 2 ulp and its argument u is off by 4 roundings, so e^u by 4·|u|, |u| ≤ 88,
// relative to the result; beyond, e^-u stays at 2^127.5, so that a·b/e^-u is off by at most
// |a·b|·2^-127.
TEST(Operations, GatedActivationAgreesWithTheReference) {
  base::ThreadPool pool(2);
  const auto reference = MakeReferenceBackend(pool);
  std::vector<float> a, b;
  for (float x = -120.0f; x <= 120.0f; x += 0.37f) a.push_back(x);
  for (float x = -4.0f; x <= 4.0f; x += 0.011f) a.push_back(x);
  for (const float x : {0.0f, -0.0f, 1e4f, -1e4f, 1e-30f}) a.push_back(x);
  for (size_t i = 0; i < a.size(); ++i) b.push_back(ValueAt(9, static_cast<int64_t>(i), 0, 1e4f));
  const auto n = static_cast<int64_t>(a.size());
  for (const Subject& subject : AllSubjects()) {
    const auto backend = subject.make(pool);
    for (const Gate gate : {Gate::kSilu, Gate::kGeluTanh}) {
      const auto out = backend->AllocateActivations(1, n);
      const auto expected = reference->AllocateActivations(1, n);
      backend->GatedActivation(gate, a.data(), b.data(), 1, n, *out);
      reference->GatedActivation(gate, a.data(), b.data(), 1, n, *expected);
      SCOPED_TRACE(subject.name);
      ExpectNear(ReadBack(*backend, *out, 1, n), ReadBack(*reference, *expected, 1, n),
                 (4 * 88 + 8) * kUlp, 1e4 * 1e4 * 0x1p-127);
    }
  }
}

TEST(Operations, EmbedGivesTheDequantizedRowsTimesTheScale) {
  base::ThreadPool pool(2);
  const RandomTensor table = MakeTensor(TensorType::kQ6_K, 512, 9);
  std::vector<float> values(512 * 9);
  gguf::Dequantize(TensorType::kQ6_K, table.bytes.data(), 512 * 9, values.data());
  const std::vector<int32_t> tokens = {8, 0, 3, 3};
  for (const Subject& subject : AllSubjects()) {
    std::vector<float> out(tokens.size() * 512);
    subject.make(pool)->Embed(table.tensor, {.tokens = tokens, .scale = 22.5f, .out = out.data()});
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(out[i], values[tokens[i / 512] * 512 + i % 512] * 22.5f) << subject.name;
    }
  }
}

// The page holds round(k), round(rotate(round(k))) and round(v), and Extract gives the first and
// last back.
TEST(Operations, AppendStoresRoundedRawAndRotatedKeys) {
  base::ThreadPool pool(2);
  for (const Subject& subject : AllSubjects()) {
    const auto backend = subject.make(pool);
    for (const bool interleaved : {false, true}) {
      const KvLayout layout(backend->kv_type(), std::vector<LayerStreams>{
                                                    {.kv_heads = 3, .k_width = 24, .v_width = 20}});
      const RopeTable rope({.rotated = 20, .interleaved = interleaved, .positions_max = 300});
      const int64_t first = 120, rows = 80;
      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<std::byte*> pages;
      for (int i = 0; i < 3; ++i) {
        buffers.push_back(backend->Allocate(layout.tail_bytes()));
        pages.push_back(buffers.back()->data());
      }
      const std::vector<float> k = Values(1, rows * 72, 300.0f);
      const std::vector<float> v = Values(2, rows * 60, 300.0f);
      SequenceRows sequence;
      sequence.rows = rows;
      sequence.first_position = first;
      sequence.tail_pages = pages;
      sequence.tail_page_first = 1;
      backend->Append({.layout = &layout,
                       .rope = &rope,
                       .sequences = std::span<const SequenceRows>(&sequence, 1),
                       .k = k.data(),
                       .v = v.data(),
                       .k_stride = 72,
                       .v_stride = 60});
      const int element = KvBytes(layout.type());
      for (int head = 0; head < 3; ++head) {
        std::vector<std::byte> raw(rows * 24 * element), values(rows * 20 * element);
        const std::vector<const std::byte*> const_pages(pages.begin(), pages.end());
        backend->Extract({.layout = &layout,
                          .kv_head = head,
                          .pages = const_pages,
                          .page_first = 1,
                          .first_local = first,
                          .slots = rows,
                          .raw_keys = raw.data(),
                          .values = values.data()});
        for (int64_t row = 0; row < rows; ++row) {
          const std::vector<float> key(k.begin() + row * 72 + head * 24,
                                       k.begin() + row * 72 + head * 24 + 24);
          const std::vector<float> value(v.begin() + row * 60 + head * 20,
                                         v.begin() + row * 60 + head * 20 + 20);
          const auto raw_key = ToElements(layout.type(), key);
          ASSERT_EQ(std::memcmp(raw.data() + row * 24 * element, raw_key.data(), raw_key.size()),
                    0);
          ASSERT_EQ(std::memcmp(values.data() + row * 20 * element,
                                ToElements(layout.type(), value).data(), 20 * element),
                    0);
          std::vector<float> rotated = FromElements(layout.type(), raw_key.data(), 24);
          rope.Rotate(rotated.data(), 24, first + row, rotated.data());
          const auto expected = ToElements(layout.type(), rotated);
          const std::byte* page = pages[(first + row) / 64 - 1];
          for (int d = 0; d < 24; ++d) {
            ASSERT_EQ(std::memcmp(page + layout.keys_offset(0, head) +
                                      (d * 64 + (first + row) % 64) * element,
                                  expected.data() + d * element, element),
                      0)
                << subject.name << " row " << row << " element " << d;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvasir::kernels::testing

// kvasir-bench-linear: speed of matrix products, per weight type, number of rows and threads,
// beside the machine's read bandwidth. Weights are random bytes in several copies, larger together
// than the caches, multiplied in turn. Every figure is the best of several passes: the machine may
// be shared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "engine/base/thread_pool.h"
#include "engine/kernels/cpu/linear/linear.h"
#include "eval/bench/roof.h"

namespace kvasir::eval {
namespace {

using gguf::TensorType;
using kernels::CpuPath;

struct Shape {
  std::string model;
  TensorType type;
  int64_t k, n;
};

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {
      {"smollm2-135m ffn_up", TensorType::kQ4_1, 576, 1536},
      {"smollm2-135m ffn_down", TensorType::kQ4_1, 1536, 576},
      {"smollm2-135m attn_k", TensorType::kQ4_1, 576, 192},
      {"qwen2.5-0.5b ffn_up", TensorType::kQ5_0, 896, 4864},
      {"qwen2.5-0.5b attn_q", TensorType::kQ5_0, 896, 896},
      {"qwen2.5-0.5b ffn_down", TensorType::kQ4_K, 4864, 896},
      {"qwen2.5-0.5b ffn_down", TensorType::kQ6_K, 4864, 896},
      {"qwen2.5-0.5b lm_head", TensorType::kQ8_0, 896, 151936},
      {"as ffn_up", TensorType::kQ4_0, 896, 4864},
      {"as ffn_up", TensorType::kQ5_1, 896, 4864},
      {"as ffn_down", TensorType::kQ5_K, 4864, 896},
      {"as ffn_up", TensorType::kF16, 896, 4864},
      {"as ffn_up", TensorType::kF32, 896, 4864},
  };
  return shapes;
}

struct Options {
  std::vector<int> threads = {1, 2};
  std::vector<int64_t> rows = {1, 4, 8, 64, 256};
  std::string type;
  std::string path = "avx2";
  int passes = 12;
};

CpuPath PathNamed(const std::string& name) {
  if (name == "generic") return CpuPath::kGeneric;
  return name == "avx512_vnni" ? CpuPath::kAvx512Vnni : CpuPath::kAvx2;
}

// Copies of a random weight, 64 MiB or more in all.
std::vector<std::unique_ptr<kernels::PackedMatrix>> MakeWeights(const Shape& shape,
                                                                base::ThreadPool& pool) {
  const gguf::TypeInfo& info = gguf::Info(shape.type);
  std::vector<uint8_t> bytes(
      static_cast<size_t>(shape.k / info.block_elements * shape.n * info.block_bytes));
  base::SeededEntropy(1).Fill(bytes);
  // Random halves would be infinite now and then; the speed is to be that of finite numbers.
  for (uint8_t& byte : bytes) byte &= 0xbb;
  gguf::Tensor tensor;
  tensor.name = shape.model;
  tensor.type = shape.type;
  tensor.dims = {shape.k, shape.n};
  tensor.data = bytes;
  std::vector<std::unique_ptr<kernels::PackedMatrix>> weights;
  for (size_t total = 0; total < size_t{64} << 20; total += bytes.size()) {
    auto packed = kernels::PackedMatrix::Pack(tensor, kernels::Precision::kFast, pool);
    KVASIR_CHECK(packed.ok());
    weights.push_back(std::move(packed).value());
  }
  return weights;
}

void Measure(const Shape& shape, const Options& options, int threads, double bandwidth) {
  base::ThreadPool pool(threads);
  const CpuPath path = PathNamed(options.path);
  const auto weights = MakeWeights(shape, pool);
  const int64_t rows_max = *std::max_element(options.rows.begin(), options.rows.end());
  std::vector<float> x(static_cast<size_t>(rows_max * shape.k));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(base::UniformAt(1, 2, i)) - 0.5f;
  std::vector<float> out(static_cast<size_t>(rows_max * shape.n));
  kernels::QuantizedRows q(rows_max, shape.k);
  for (int64_t r = 0; r < rows_max; ++r) {
    kernels::QuantizeRow(path, x.data() + r * shape.k, r, q);
  }
  const double bytes = static_cast<double>(weights[0]->bytes());
  for (const int64_t rows : options.rows) {
    const size_t copies = rows < 16 ? weights.size() : 1;
    double best = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < options.passes; ++pass) {
      const auto begin = std::chrono::steady_clock::now();
      for (size_t i = 0; i < copies; ++i) {
        const kernels::LinearTask task = {
            .weight = weights[i].get(), .out = out.data(), .out_stride = shape.n};
        kernels::MultiplyRows(path, pool, rows, x.data(), shape.k, &q, {&task, 1});
      }
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / static_cast<double>(copies));
    }
    const double macs = static_cast<double>(rows * shape.k * shape.n);
    fmt::print(
        "{:5} {:>5} x {:<7} {:23} threads {}  rows {:>3}  {:8.1f} GMAC/s  {:6.2f} GB/s ({:3.0f} "
        "%)\n",
        gguf::Info(shape.type).name, shape.k, shape.n, shape.model, threads, rows,
        macs / best * 1e-9, bytes / best * 1e-9, 100 * bytes / best / bandwidth);
  }
}

}  // namespace
}  // namespace kvasir::eval

int main(int argc, char** argv) {
  kvasir::eval::Options options;
  CLI::App app("Speed of matrix products beside the machine's read bandwidth.");
  app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',');
  app.add_option("--rows", options.rows, "numbers of rows")->delimiter(',');
  app.add_option("--type", options.type, "only this weight type (Q4_1, ...)");
  app.add_option("--path", options.path, "generic, avx2 or avx512_vnni")
      ->check(CLI::IsMember({"generic", "avx2", "avx512_vnni"}));
  app.add_option("--passes", options.passes, "passes per figure")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  for (const int threads : options.threads) {
    kvasir::base::ThreadPool pool(threads);
    const double bandwidth = kvasir::eval::MeasureReadBandwidth(pool);
    fmt::print("read bandwidth, {} threads: {:.1f} GB/s\n", threads, bandwidth * 1e-9);
    for (const auto& shape : kvasir::eval::Shapes()) {
      if (!options.type.empty() && options.type != kvasir::gguf::Info(shape.type).name) continue;
      kvasir::eval::Measure(shape, options, threads, bandwidth);
    }
  }
  return 0;
}

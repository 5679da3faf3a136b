// kvasir-bench-attention: speed of attention over a tail, per shape of heads, depth and number of
// rows. Every figure is the best of several passes: the machine may be shared. Decoding steps read
// several layers in turn, larger together than the caches.
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
#include "engine/kernels/cpu/cpu_backend.h"
#include "eval/bench/roof.h"

namespace kvasir::eval {
namespace {

using kernels::Backend;

struct Shape {
  std::string model;
  int q_heads, kv_heads, width, layers;
};

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {{"qwen2.5-0.5b", 14, 2, 64, 24},
                                            {"smollm2-135m", 9, 3, 64, 30},
                                            {"qwen2.5-1.5b", 12, 2, 128, 28},
                                            {"gemma-3-270m", 4, 1, 256, 18}};
  return shapes;
}

struct Options {
  std::vector<int> threads = {1, 2};
  std::vector<int64_t> rows = {1, 8, 512};
  std::vector<int64_t> depths = {0, 512, 4096};
  int passes = 8;
};

std::vector<float> Random(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(base::UniformAt(1, 2, i)) - 0.5f;
  }
  return values;
}

// A tail of `positions` positions, every layer filled with random keys and values.
class Tail {
 public:
  Tail(const Shape& shape, int64_t positions, Backend& backend)
      : shape_(shape),
        backend_(backend),
        layout_(backend.kv_type(), std::vector<kernels::LayerStreams>(
                                       shape.layers, {shape.kv_heads, shape.width, shape.width})),
        rope_({.rotated = shape.width, .positions_max = positions}) {
    const int64_t pages = (positions + kernels::kPageSlots - 1) / kernels::kPageSlots;
    memory_ = backend.Allocate(pages * layout_.tail_bytes());
    for (int64_t i = 0; i < pages; ++i) {
      pages_.push_back(memory_->data() + i * layout_.tail_bytes());
      const_pages_.push_back(pages_.back());
    }
    const int64_t stride = int64_t{shape.kv_heads} * shape.width;
    const std::vector<float> values = Random(positions * stride);
    kernels::SequenceRows rows;
    rows.rows = positions;
    rows.tail_pages = pages_;
    for (int layer = 0; layer < shape.layers; ++layer) {
      backend.Append({.layout = &layout_,
                      .layer = layer,
                      .rope = &rope_,
                      .sequences = {&rows, 1},
                      .k = values.data(),
                      .v = values.data(),
                      .k_stride = stride,
                      .v_stride = stride});
    }
  }

  // Seconds of one layer's attention of `rows` rows behind `depth` positions.
  double Measure(int64_t depth, int64_t rows, int passes) {
    const int64_t stride = int64_t{shape_.q_heads} * shape_.width;
    const std::vector<float> q = Random(rows * stride);
    std::vector<float> out(rows * stride);
    kernels::Span span;
    span.end = depth + rows;
    span.pages = const_pages_;
    kernels::SequenceRows sequence;
    sequence.rows = rows;
    sequence.first_position = depth;
    sequence.spans = {&span, 1};
    const int layers = rows < 16 ? shape_.layers : 1;
    double best = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < passes; ++pass) {
      const auto begin = std::chrono::steady_clock::now();
      for (int layer = 0; layer < layers; ++layer) {
        backend_.Attend({.layout = &layout_,
                         .layer = layer,
                         .rope = &rope_,
                         .sequences = {&sequence, 1},
                         .q = q.data(),
                         .q_stride = stride,
                         .q_heads = shape_.q_heads,
                         .scale = 0.125f,
                         .out = out.data()});
      }
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / layers);
    }
    return best;
  }

 private:
  const Shape& shape_;
  Backend& backend_;
  kernels::KvLayout layout_;
  kernels::RopeTable rope_;
  std::unique_ptr<kernels::Buffer> memory_;
  std::vector<std::byte*> pages_;
  std::vector<const std::byte*> const_pages_;
};

void MeasureShape(const Shape& shape, const Options& options, base::ThreadPool& pool) {
  auto backend =
      kernels::MakeCpuBackend(kernels::AvailableCpuPaths().back(), kernels::Precision::kFast, pool);
  KVASIR_CHECK(backend.ok());
  const int64_t positions = *std::max_element(options.depths.begin(), options.depths.end()) +
                            *std::max_element(options.rows.begin(), options.rows.end());
  Tail tail(shape, positions, **backend);
  for (const int64_t depth : options.depths) {
    for (const int64_t rows : options.rows) {
      const double seconds = tail.Measure(depth, rows, options.passes);
      const double pairs = static_cast<double>(rows * depth + rows * (rows + 1) / 2);
      const double flops = pairs * shape.q_heads * shape.width * 4;
      const double bytes = static_cast<double>((depth + rows) * shape.kv_heads * shape.width * 4);
      fmt::print(
          "{:13} threads {}  depth {:>4} rows {:>3}  {:9.3f} ms  {:6.1f} GFLOP/s  {:6.2f} "
          "GB/s of keys and values\n",
          shape.model, pool.threads(), depth, rows, seconds * 1e3, flops / seconds * 1e-9,
          bytes / seconds * 1e-9);
    }
  }
}

}  // namespace
}  // namespace kvasir::eval

int main(int argc, char** argv) {
  kvasir::eval::Options options;
  CLI::App app("Speed of attention over a tail.");
  app.add_option("--threads", options.threads, "numbers of threads")->delimiter(',');
  app.add_option("--rows", options.rows, "rows of a step")->delimiter(',');
  app.add_option("--depths", options.depths, "positions before the rows")->delimiter(',');
  app.add_option("--passes", options.passes, "repetitions; the best counts");
  CLI11_PARSE(app, argc, argv);
  for (const int threads : options.threads) {
    kvasir::base::ThreadPool pool(threads);
    fmt::print("threads {}: memory is read at {:.1f} GB/s\n", threads,
               kvasir::eval::MeasureReadBandwidth(pool) * 1e-9);
    for (const auto& shape : kvasir::eval::Shapes()) {
      kvasir::eval::MeasureShape(shape, options, pool);
    }
  }
  return 0;
}

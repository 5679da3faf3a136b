// Kernels: the table of vector loops of one CPU path, over raw pointers.
//
// The loops are written once (elementwise_kernels.h, attention_kernels.h) on 16 float lanes and
// compiled once per path with that path's instructions (kernels_generic.cc, kernels_avx2.cc,
// kernels_avx512.cc), everything in anonymous namespaces, so that no code compiled for a newer CPU
// can be shared by the linker with code that runs everywhere.
//
// All paths give identical bits (numeric definition "cpu/1"). Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir::kernels::cpu {

// Lanes over which every split sum is split, on every path.
inline constexpr int kLanes = 16;
// Query lines (row, head) whose scores and outputs are computed together.
inline constexpr int kTileLines = 6;
// Floats from one element of the packed queries of a tile to the next.
inline constexpr int kTilePitch = 8;
// Floats from one line's scores to the next's.
inline constexpr int kScorePitch = 256;

// out[line * kPageTile + i] = dot(query of line, key of slot i) · scale (+ beta[i]).
struct ScoreTile {
  const std::byte* keys = nullptr;  // [k_width, 64] from the first slot, a multiple of 16
  int k_width = 0;
  int blocks = 0;                  // blocks of 16 slots, 1..4
  const float* queries = nullptr;  // [k_width, kTilePitch]
  int lines = 0;                   // 1..kTileLines
  float scale = 1.0f;
  const float* beta = nullptr;  // [blocks · 16] or nullptr
  float* out = nullptr;         // [lines, 64]
};

// out[line, d] = fma(p[line, j], values[j, d], out[line, d]) for j ascending.
struct ValueTile {
  const std::byte* values = nullptr;  // [slots, v_stride]
  int v_stride = 0;                   // a multiple of 16
  int slots = 0;
  const float* p = nullptr;  // [lines, kScorePitch]
  int lines = 0;             // 1..kTileLines
  float* out = nullptr;      // [lines, v_stride]
};

// Running (max, sum, output) of one line. max = −infinity: nothing seen yet.
struct Partial {
  float max = 0;
  float sum = 0;
};

struct Rotation {
  const float* cos = nullptr;  // [rotated/2]
  const float* sin = nullptr;  // [rotated/2]
  int rotated = 0;
  bool interleaved = false;
};

// The loops that read or write elements of one KvType.
struct KvKernels {
  void (*scores)(const ScoreTile& tile);
  void (*values)(const ValueTile& tile);
  // n floats to elements (rounded to nearest even) and back.
  void (*store)(const float* from, int64_t n, std::byte* to);
  void (*load)(const std::byte* from, int64_t n, float* to);
};

struct Kernels {
  // RMSNorm of one row [n].
  void (*norm)(const float* x, const float* weight, int64_t n, float eps, float* out);
  // out = gate(a) · b, [n].
  void (*silu)(const float* a, const float* b, int64_t n, float* out);
  void (*gelu_tanh)(const float* a, const float* b, int64_t n, float* out);
  // exp of n floats; relative error ≤ 2 ulp for x in [−87.3, 88.3]; 0 below, clamped above.
  void (*exp)(const float* x, int64_t n, float* out);
  // RopeTable::Rotate.
  void (*rotate)(const float* head, int width, const Rotation& rotation, float* out);
  // Turns scores [blocks · 16] into exp(score − max) and returns max and sum; a score of −infinity
  // becomes 0. All −infinity: max is −infinity, scores are not changed.
  Partial (*softmax)(float* scores, int blocks);
  // Merges a later partial into (into, into_out), [v_stride]. REQUIRES: later.max is not −infinity.
  void (*merge)(const Partial& later, const float* later_out, int v_stride, Partial& into,
                float* into_out);
  // out = from / sum, [n].
  void (*divide)(const float* from, float sum, int64_t n, float* out);
  KvKernels f16;
  KvKernels f32;
};

const Kernels& GenericKernels();
#if defined(__x86_64__)
const Kernels& Avx2Kernels();    // needs AVX2, FMA, F16C
const Kernels& Avx512Kernels();  // needs AVX-512 F, BW, VL, DQ
#endif

}  // namespace kvasir::kernels::cpu

// Backend: the operations of a decoder's forward pass over a *ragged batch* (the rows of many
// sequences, 1..n tokens each).
//
// One written contract, several implementations: kernels/reference (plain loops in double),
// kernels/cpu (run-time paths), later kernels/cuda. Every operation is a pure function of each row
// (Attend: of the row and the slots it sees): a row's result never depends on which other rows are
// in the batch, on the number of threads, or on how slots lie in pages. Matrices are given as the
// GGUF file has them: [rows N, columns K], row-major, output n = dot(row n, input).
//
// Pointers are in the backend's memory space (Allocate), unless said otherwise; the caller owns
// everything it passes. Threads: one operation at a time; each may run on all threads of the pool
// given at creation. No operation fails: shapes are checked once, when matrices are loaded and
// buffers made (KVASIR_CHECK).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/kernels/kv_layout.h"
#include "engine/kernels/rope.h"

namespace kvasir::kernels {

// Memory of a backend, zeroed, 64-byte aligned, freed with the object.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() = 0;
  virtual size_t bytes() const = 0;
  float* floats() { return reinterpret_cast<float*>(data()); }
};

// A weight [rows N, columns K] in the backend's own layout.
class Matrix {
 public:
  virtual ~Matrix() = default;
  virtual int64_t rows() const = 0;
  virtual int64_t columns() const = 0;
  // Bytes read when the whole matrix is multiplied once.
  virtual size_t bytes() const = 0;
};

// Inputs of linear operations: [rows ≤ rows_max, columns ≤ columns_max], as floats and in whatever
// form the backend multiplies (int8 blocks with scales on the integer paths).
class Activations {
 public:
  virtual ~Activations() = default;
  virtual int64_t rows_max() const = 0;
  virtual int64_t columns_max() const = 0;
};

struct EmbedParams {
  std::span<const int32_t> tokens;  // [rows], host memory; each in [0, rows of the table)
  float scale = 1.0f;               // values are multiplied by it
  float* out = nullptr;             // [rows, columns of the table]
};

// RMSNorm: out = x / sqrt(mean(x²) + eps) · weight. Source: Zhang & Sennrich, arXiv 1910.07467,
// section 4.
struct NormParams {
  const float* x = nullptr;       // [*, columns]
  std::span<const int32_t> rows;  // which rows of x, host memory; out row i is x row rows[i]
  int64_t columns = 0;
  const float* weight = nullptr;  // [columns]
  float eps = 0;
};

// One product of a group that shares its input: out[i, n] = in[i, :] · w[n, :] + bias[n] (+ out[i,
// n] when adding).
struct LinearTask {
  const Matrix* weight = nullptr;
  const float* bias = nullptr;  // [N] or nullptr
  float* out = nullptr;         // [rows, out_stride]
  int64_t out_stride = 0;
  bool add = false;  // residual: the product is added to what out holds
};

// The rows of one sequence in this step. Positions are consecutive.
struct SequenceRows {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t first_position = 0;  // logical position of the first row
  std::span<const Span> spans =
      {};  // all that the sequence can see; dense spans do not overlap; host memory
  // The tail: the pages that receive the rows' keys and values; tail_pages[i] holds local positions
  // [(tail_page_first + i) * kPageSlots, …), local = logical (frame 0). Also named by one of
  // `spans`.
  std::span<std::byte* const> tail_pages = {};
  int64_t tail_page_first = 0;
};

// Writes keys and values of the step's rows to the sequences' tails: raw = round(k); keys =
// round(rotate(raw)) at the row's position; values = round(v). Rounding is to KvLayout::type(), to
// nearest even.
struct AppendParams {
  const KvLayout* layout = nullptr;
  int layer = 0;
  const RopeTable* rope = nullptr;
  std::span<const SequenceRows> sequences;
  const float* k = nullptr;            // [rows, kv_heads, k_width], before rotation
  const float* v = nullptr;            // [rows, kv_heads, v_width]
  int64_t k_stride = 0, v_stride = 0;  // floats from row to row
};

// Attention of each row over everything its sequence sees at positions ≤ its own (and > position −
// window when window is not 0), grouped heads: query head h reads KV head h / (q_heads / kv_heads).
//   score_j = (rotate(q, m − frame) · key_j) · scale + beta_j;   out = softmax(score) · values
// Reduction: per split of the grid (docs/architecture.md, numeric definition) a partial (max, sum,
// output); partials are merged in ascending order, sparse spans first, in the order of `begin`. A
// row that sees no slot gives zeros.
struct AttendParams {
  const KvLayout* layout = nullptr;
  int layer = 0;
  const RopeTable* rope = nullptr;
  std::span<const SequenceRows> sequences;
  const float* q = nullptr;  // [rows, q_heads, k_width], before rotation
  int64_t q_stride = 0;      // floats from row to row
  int q_heads = 0;
  float scale = 1.0f;
  int64_t window = 0;    // 0: none
  float* out = nullptr;  // [rows, q_heads, v_width]
  // [rows, q_heads]: ln of the sum of exp(score) over all slots the line saw, −infinity for none;
  // or null. What compaction needs to know how much of a query's attention a state gets.
  float* log_sum_exp = nullptr;
};

enum class Gate { kSilu, kGeluTanh };

class Backend {
 public:
  virtual ~Backend() = default;

  // "avx2", "avx512_vnni", "generic", "reference"; with "-float" behind it for the float path. Part
  // of a state's build_id.
  virtual std::string_view name() const = 0;
  // What KV pages of this backend hold.
  virtual KvType kv_type() const = 0;

  virtual std::unique_ptr<Buffer> Allocate(size_t bytes) = 0;
  // Overwrites `bytes` bytes of backend memory with zeros.
  virtual void Zero(std::byte* data, size_t bytes) = 0;
  // Copies `bytes` bytes of backend memory to host memory.
  virtual void Download(const std::byte* data, size_t bytes, std::byte* out) = 0;
  virtual std::unique_ptr<Activations> AllocateActivations(int64_t rows_max,
                                                           int64_t columns_max) = 0;
  // Repacks a 2-D tensor for Linear. The tensor's file data is not referred to afterwards.
  // Errors: InvalidArgument (not 2-D), Unimplemented (type or shape this backend cannot multiply;
  // names the tensor).
  virtual base::StatusOr<std::unique_ptr<Matrix>> LoadMatrix(const gguf::Tensor& tensor) = 0;
  // Copies a tensor to floats in backend memory (norm weights, biases).
  virtual std::unique_ptr<Buffer> LoadFloats(const gguf::Tensor& tensor) = 0;

  // out row i = row tokens[i] of `table` (dequantized) · scale. `table` lies in the mapped file.
  virtual void Embed(const gguf::Tensor& table, const EmbedParams& params) = 0;
  // RMSNorm of the chosen rows into `out`, made ready for Linear.
  virtual void Norm(const NormParams& params, Activations& out) = 0;
  // Copies x [rows, columns] into `out`, made ready for Linear.
  virtual void Prepare(const float* x, int64_t rows, int64_t columns, Activations& out) = 0;
  // out = gate(a) · b elementwise, [rows, columns], made ready for Linear.
  virtual void GatedActivation(Gate gate, const float* a, const float* b, int64_t rows,
                               int64_t columns, Activations& out) = 0;
  // All tasks read the rows that the last operation put into `in`.
  virtual void Linear(const Activations& in, std::span<const LinearTask> tasks) = 0;
  virtual void Append(const AppendParams& params) = 0;
  virtual void Attend(const AttendParams& params) = 0;

  // Rotates raw keys [slots, k_width] (elements of kv_type()) of local positions first_local … into
  // the resident keys of pages (mounting): exactly what Append does to the tail. pages[i] as in
  // Span with `page_first`.
  struct MountParams {
    const KvLayout* layout = nullptr;
    int layer = 0;
    int kv_head = 0;
    const RopeTable* rope = nullptr;
    std::span<std::byte* const> pages;
    int64_t page_first = 0;
    int64_t first_local = 0;
    int64_t slots = 0;
    const std::byte* raw_keys = nullptr;  // [slots, k_width]
    const std::byte* values = nullptr;    // [slots, v_width]
    bool keep_raw = false;  // the pages are tail pages: the raw keys are written to them too
  };
  virtual void Mount(const MountParams& params) = 0;

  // Reads back what Append wrote: raw keys [slots, k_width] and values [slots, v_width] of local
  // positions first_local …, elements of kv_type().
  struct ExtractParams {
    const KvLayout* layout = nullptr;
    int layer = 0;
    int kv_head = 0;
    std::span<const std::byte* const> pages;  // tail pages
    int64_t page_first = 0;
    int64_t first_local = 0;
    int64_t slots = 0;
    std::byte* raw_keys = nullptr;  // out, host memory
    std::byte* values = nullptr;    // out, host memory
  };
  virtual void Extract(const ExtractParams& params) = 0;
};

}  // namespace kvasir::kernels

// AttentionWorld: one or more sequences with mounts, tails and compacted spans, whose keys, values
// and queries are a fixed function of (seed, what, position, head, element), so that the same
// sequence can be put together in different ways and must give the same output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"

namespace kvasir::kernels::testing {

struct SpanSpec {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t frame = 0;
  bool masked = false;  // a pseudo-random third of the slots is not visible
  int sparse_slots =
      0;  // > 0: compacted; head h has sparse_slots + 16·h slots, the last of them padding
};

struct SequenceSpec {
  std::vector<SpanSpec> mounts = {};
  int64_t tail_begin = 0;
  int64_t first_position =
      0;  // of the rows that are attended; [tail_begin, first_position) is context
  int64_t rows = 1;
};

struct WorldSpec {
  std::string name = {};
  int q_heads = 1;
  int kv_heads = 1;
  int k_width = 16;
  int v_width = 16;
  int rotated = 16;
  bool interleaved = false;
  int64_t window = 0;
  float q_size = 1.0f;  // elements are uniform in ± size
  float k_size = 1.0f;
  float v_size = 1.0f;
  float scale = 0.25f;
  std::vector<SequenceSpec> sequences = {};
};

// How the same world is run.
struct RunOptions {
  int64_t chunk = 0;        // rows per step; 0: all
  bool one_by_one = false;  // each sequence in a batch of its own
};

class AttentionWorld {
 public:
  AttentionWorld(const WorldSpec& spec, Backend& backend);
  ~AttentionWorld();

  // Appends and attends all rows. Returns [rows of all sequences, q_heads, v_width + 1]: each
  // output and behind it its log-sum-exp.
  std::vector<float> Run(const RunOptions& options = {});

  // The outputs of the reference backend on the same stored keys and values (widened to f32), and
  // per output the bound on how far float arithmetic may be from it.
  std::vector<float> Reference(base::ThreadPool& pool);
  float Tolerance() const;

  const KvLayout& layout() const { return layout_; }
  // The tail pages of sequence i.
  std::vector<std::byte*> TailPages(size_t i) const;
  const RopeTable& rope() const { return rope_; }

 private:
  struct Sequence;

  void BuildMount(const SpanSpec& span, uint64_t stream, Sequence& sequence);
  void BuildSparse(const SpanSpec& span, uint64_t stream, Sequence& sequence);
  void Step(std::vector<SequenceRows>& rows, std::vector<float>& out);

  WorldSpec spec_;
  Backend& backend_;
  KvLayout layout_;
  RopeTable rope_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
};

}  // namespace kvasir::kernels::testing

// Attention: Backend::Attend on a CPU path.
//
// Numeric definition ("cpu/1"), per row at position m, query head and unit (a split of the dense
// grid of logical positions, or of a sparse span's own slots):
//   s_j = (Σ_d fma, d ascending, of rotate(q, m − frame)[d] · key_j[d]) · scale, for a sparse slot
//         fma(Σ, scale, beta_j);  max over the visible j;
//   p_j = exp(s_j − max);  sum of p_j over 16 lanes, lane = index mod 16, then the tree 8, 4, 2, 1;
//   out[d] = fma(p_j, value_j[d], out[d]), j ascending;
// partials are merged in unit order with Kernels::merge; the result is out / sum. Slots that are
// not visible take part in nothing, so what memory holds there never matters. A unit in which every
// score is −infinity is left out.
//
// Work: the *lines* (row, query head of one KV head) of a sequence are cut into groups of
// kLinesMax; a group merges its units as it goes, or, when groups are too few for the threads, its
// units are computed apart and merged after. Both give the same bits. Threads: one call at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/kernels.h"
#include "engine/kernels/cpu/runs.h"

namespace kvasir::kernels::cpu {

class Attention {
 public:
  // `kernels` and `pool` must outlive it.
  Attention(const Kernels& kernels, base::ThreadPool& pool);
  ~Attention();

  // REQUIRES: key and value widths ≤ 512 (kWidthMax); positions within the RoPE table.
  void Attend(const AttendParams& params);

 private:
  struct Scratch;
  struct Group;
  struct Item {
    int group = 0;
    int unit = 0;  // −1: all units
  };

  void MakeGroups(const AttendParams& params);
  void MakeItems(int v_stride);
  void RunItem(const AttendParams& params, const Item& item, Scratch& scratch);
  void MergeUnits(const AttendParams& params, const Group& group, Scratch& scratch);
  void Finish(const AttendParams& params, const Group& group, Scratch& scratch);

  const Kernels& kernels_;
  base::ThreadPool& pool_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // per thread
  std::vector<OrderedSpans> spans_;                // per sequence
  std::vector<Group> groups_;
  std::vector<Item> items_;
  std::vector<float> partials_;  // of units computed apart
};

}  // namespace kvasir::kernels::cpu

#include "engine/kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/base/check.h"
#include "engine/kernels/cpu/attention_group.h"

namespace kvasir::kernels::cpu {
namespace {

// Floats of all partials of units that are computed apart.
constexpr int64_t kPartialFloatsMax = int64_t{1} << 21;
// A stored partial: max, sum, padding, then the output.
constexpr int kPartialHead = 16;

// Merges partials as they come.
class MergingSink final : public GroupAttention::Sink {
 public:
  MergingSink(const Kernels& kernels, int lines, int v_stride, Partial* partials, float* out)
      : kernels_(kernels), v_stride_(v_stride), partials_(partials), out_(out) {
    std::fill_n(partials_, lines, Partial{.max = kNothing, .sum = 0});
    std::fill_n(out_, lines * v_stride, 0.0f);
  }
  void Take(int line, const Partial& partial, const float* out) override {
    kernels_.merge(partial, out, v_stride_, partials_[line], out_ + line * v_stride_);
  }

 private:
  const Kernels& kernels_;
  const int v_stride_;
  Partial* const partials_;  // [lines]
  float* const out_;         // [lines, v_stride]
};

// Stores the partials of one unit.
class StoringSink final : public GroupAttention::Sink {
 public:
  StoringSink(float* at, int lines, int v_stride) : at_(at), v_stride_(v_stride) {
    for (int line = 0; line < lines; ++line) Of(line)[0] = kNothing;
  }
  void Take(int line, const Partial& partial, const float* out) override {
    Of(line)[0] = partial.max;
    Of(line)[1] = partial.sum;
    std::copy_n(out, v_stride_, Of(line) + kPartialHead);
  }

 private:
  float* Of(int line) const { return at_ + line * (kPartialHead + v_stride_); }
  float* const at_;  // [lines, kPartialHead + v_stride]
  const int v_stride_;
};

}  // namespace

struct Attention::Scratch {
  GroupScratch group;
  Partial partials[kLinesMax];
};

struct Attention::Group {
  int sequence = 0;
  HeadPlace place;
  LineRange lines;
  OrderedSpans::Units units;
  float* partials = nullptr;  // [units, lines, kPartialHead + v_stride] when units are apart
};

Attention::Attention(const Kernels& kernels, base::ThreadPool& pool)
    : kernels_(kernels), pool_(pool) {
  for (int i = 0; i < pool.threads(); ++i) scratch_.push_back(std::make_unique<Scratch>());
}

Attention::~Attention() = default;

void Attention::MakeGroups(const AttendParams& params) {
  const LayerStreams& streams = params.layout->layer(params.layer);
  KVASIR_CHECK(params.q_heads % streams.kv_heads == 0);
  const int heads = params.q_heads / streams.kv_heads;
  groups_.clear();
  if (spans_.size() < params.sequences.size()) spans_.resize(params.sequences.size());
  for (size_t i = 0; i < params.sequences.size(); ++i) {
    const SequenceRows& sequence = params.sequences[i];
    spans_[i].Reset(sequence);
    for (int kv_head = 0; kv_head < streams.kv_heads; ++kv_head) {
      const HeadPlace place = {params.layout, params.layer, kv_head};
      const int64_t lines = sequence.rows * heads;
      for (int64_t first = 0; first < lines; first += kLinesMax) {
        Group group;
        group.sequence = static_cast<int>(i);
        group.place = place;
        group.lines = {.sequence = &sequence,
                       .line_first = first,
                       .lines = static_cast<int>(std::min<int64_t>(kLinesMax, lines - first)),
                       .heads = heads};
        const int64_t low = group.lines.position(0);
        const int64_t high = group.lines.position(group.lines.lines - 1);
        group.units = spans_[i].UnitsOf(
            place, params.window > 0 ? std::max<int64_t>(0, low - params.window + 1) : 0, high + 1);
        groups_.push_back(group);
      }
    }
  }
}

// Groups whose work is a large part of the whole are cut into their units, so that threads finish
// together.
void Attention::MakeItems(int v_stride) {
  items_.clear();
  int64_t work = 0;
  for (const Group& group : groups_) work += group.lines.lines * group.units.count();
  const int64_t share = work / (int64_t{4} * pool_.threads());
  int64_t used = 0;
  for (int i = static_cast<int>(groups_.size()) - 1; i >= 0; --i) {  // the longest first
    Group& group = groups_[i];
    const int64_t units = group.units.count();
    const int64_t floats = units * group.lines.lines * (kPartialHead + v_stride);
    const bool apart = pool_.threads() > 1 && units > 1 && group.lines.lines * units > share &&
                       used + floats <= kPartialFloatsMax;
    if (!apart) {
      items_.push_back({i, -1});
      continue;
    }
    if (partials_.empty()) partials_.resize(kPartialFloatsMax);
    group.partials = partials_.data() + used;
    used += floats;
    for (int unit = 0; unit < units; ++unit) items_.push_back({i, unit});
  }
}

void Attention::RunItem(const AttendParams& params, const Item& item, Scratch& scratch) {
  const Group& group = groups_[item.group];
  const OrderedSpans& spans = spans_[group.sequence];
  const int v_stride = params.layout->v_stride(params.layer);
  const int lines = group.lines.lines;
  GroupAttention attention(kernels_, params, spans, group.place, group.lines, scratch.group);
  if (item.unit >= 0) {
    StoringSink sink(group.partials + int64_t{item.unit} * lines * (kPartialHead + v_stride), lines,
                     v_stride);
    attention.RunUnit(spans.UnitAt(group.place, group.units, item.unit), sink);
    return;
  }
  MergingSink sink(kernels_, lines, v_stride, scratch.partials, scratch.group.merged);
  for (int64_t unit = 0; unit < group.units.count(); ++unit) {
    attention.RunUnit(spans.UnitAt(group.place, group.units, unit), sink);
  }
  Finish(params, group, scratch);
}

void Attention::MergeUnits(const AttendParams& params, const Group& group, Scratch& scratch) {
  const int v_stride = params.layout->v_stride(params.layer);
  const int lines = group.lines.lines;
  MergingSink sink(kernels_, lines, v_stride, scratch.partials, scratch.group.merged);
  const float* at = group.partials;
  for (int64_t unit = 0; unit < group.units.count(); ++unit) {
    for (int line = 0; line < lines; ++line, at += kPartialHead + v_stride) {
      if (at[0] != kNothing) sink.Take(line, {.max = at[0], .sum = at[1]}, at + kPartialHead);
    }
  }
  Finish(params, group, scratch);
}

void Attention::Finish(const AttendParams& params, const Group& group, Scratch& scratch) {
  const int v_width = params.layout->layer(params.layer).v_width;
  const int v_stride = params.layout->v_stride(params.layer);
  for (int line = 0; line < group.lines.lines; ++line) {
    const int64_t row = group.lines.sequence->first_row + group.lines.row(line);
    const int head = group.place.kv_head * group.lines.heads + group.lines.head(line);
    float* out = params.out + (row * params.q_heads + head) * v_width;
    if (params.log_sum_exp != nullptr) {
      // ln of no terms: the maximum of none is −infinity, and so is their logarithm.
      params.log_sum_exp[row * params.q_heads + head] =
          scratch.partials[line].max + std::log(scratch.partials[line].sum);
    }
    if (scratch.partials[line].max == kNothing) {
      std::fill_n(out, v_width, 0.0f);
    } else {
      kernels_.divide(scratch.group.merged + line * v_stride, scratch.partials[line].sum, v_width,
                      out);
    }
  }
}

void Attention::Attend(const AttendParams& params) {
  const LayerStreams& streams = params.layout->layer(params.layer);
  KVASIR_CHECK(streams.k_width <= kWidthMax && params.layout->v_stride(params.layer) <= kWidthMax);
  MakeGroups(params);
  MakeItems(params.layout->v_stride(params.layer));
  pool_.ParallelFor(static_cast<int64_t>(items_.size()), [&](int64_t item, int thread) {
    RunItem(params, items_[item], *scratch_[thread]);
  });
  if (items_.size() == groups_.size()) return;
  pool_.ParallelFor(static_cast<int64_t>(groups_.size()), [&](int64_t group, int thread) {
    if (groups_[group].partials != nullptr) MergeUnits(params, groups_[group], *scratch_[thread]);
  });
}

}  // namespace kvasir::kernels::cpu

#include "compaction/compact_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "compaction/solver/budget.h"

namespace kvasir::compaction {
namespace {

constexpr int64_t kRowsPerSlot = 4;
constexpr size_t kSharesKept = 4;
constexpr float kHalfMax = 65504;

// Elements of a state as floats.
MatrixF Widen(const std::vector<std::byte>& bytes, Eigen::Index rows, Eigen::Index columns,
              kv::ElementType type) {
  MatrixF out(rows, columns);
  if (type == kv::ElementType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (Eigen::Index i = 0; i < out.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * 2, sizeof(bits));
    out.data()[i] = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits));
  }
  return out;
}

// To nearest even; what a half cannot hold becomes the largest it can.
std::vector<std::byte> Narrow(const MatrixF& values, kv::ElementType type) {
  std::vector<std::byte> out(static_cast<size_t>(values.size()) * kv::ElementBytes(type));
  if (type == kv::ElementType::kF32) {
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    const auto half = Eigen::half(std::clamp(values.data()[i], -kHalfMax, kHalfMax));
    const auto bits = Eigen::numext::bit_cast<uint16_t>(half);
    std::memcpy(out.data() + i * 2, &bits, sizeof(bits));
  }
  return out;
}

// Heads of one state, numbered layer by layer.
struct Head {
  int layer = 0;
  int kv_head = 0;
};

class Compactor {
 public:
  Compactor(const kv::KvSegment& state, const kv::StateCapture& capture,
            const CompactionOptions& options)
      : state_(state), capture_(capture), options_(options) {
    for (int layer = 0; layer < std::ssize(state.geometry().layers); ++layer) {
      for (int head = 0; head < Stream(layer).kv_heads; ++head) heads_.push_back({layer, head});
    }
    group_of_.assign(static_cast<size_t>(state.logical_tokens()), -1);
    for (size_t turn = 0; turn < state.info().turns.size(); ++turn) {
      const kv::TurnRange& range = state.info().turns[turn];
      std::fill(group_of_.begin() + range.begin, group_of_.begin() + range.end,
                static_cast<int32_t>(turn));
    }
  }

  base::Status Check() const {
    if (!state_.exact()) return base::InvalidArgument("only an exact state can be compacted");
    const auto& layers = state_.geometry().layers;
    if (capture_.layers.size() != layers.size() || capture_.slots != state_.logical_tokens()) {
      return base::InvalidArgument("a capture of {} layers and {} slots, the state has {} and {}",
                                   capture_.layers.size(), capture_.slots, layers.size(),
                                   state_.logical_tokens());
    }
    for (int layer = 0; layer < std::ssize(layers); ++layer) {
      KVASIR_RETURN_IF_ERROR(CheckLayer(layer));
    }
    return base::OkStatus();
  }

  int64_t heads() const { return std::ssize(heads_); }

  // All rows of all query heads that read the head.
  HeadCapture CaptureOf(int64_t head) const {
    const auto [layer, kv_head] = heads_[static_cast<size_t>(head)];
    const kv::Stream& stream = Stream(layer);
    const kv::LayerCapture& from = capture_.layers[static_cast<size_t>(layer)];
    const int64_t group = capture_.q_heads / stream.kv_heads, width = stream.k_width;
    HeadCapture out;
    out.scale = capture_.scale;
    const std::vector<float>& keys = from.keys[static_cast<size_t>(kv_head)];
    out.keys = Eigen::Map<const MatrixF>(keys.data(), capture_.slots, width);
    out.values = Widen(state_.head(layer, kv_head).values, capture_.slots, stream.v_width,
                       state_.info().element_type);
    out.queries.resize(capture_.rows * group, width);
    out.log_sum_exp.resize(capture_.rows * group);
    for (int64_t row = 0; row < capture_.rows; ++row) {
      for (int64_t g = 0; g < group; ++g) {
        const int64_t line = row * capture_.q_heads + kv_head * group + g;
        out.queries.row(row * group + g) =
            Eigen::Map<const Eigen::RowVectorXf>(from.queries.data() + line * width, width);
        out.log_sum_exp[row * group + g] = from.log_sum_exp[static_cast<size_t>(line)];
      }
    }
    return out;
  }

  base::StatusOr<HeadSolver> SolverOf(int64_t head, int64_t slots_most) const {
    const int64_t rows = std::max(options_.fit_rows, kRowsPerSlot * slots_most);
    return HeadSolver::Create(SampleRows(CaptureOf(head), rows), group_of_,
                              static_cast<int32_t>(state_.info().turns.size()), options_.fit);
  }

  kv::HeadSlots SlotsOf(int64_t head, const HeadFit& fit) const {
    const auto [layer, kv_head] = heads_[static_cast<size_t>(head)];
    const kv::HeadSlots& from = state_.head(layer, kv_head);
    const size_t key_bytes = static_cast<size_t>(Stream(layer).k_width) *
                             static_cast<size_t>(kv::ElementBytes(state_.info().element_type));
    kv::HeadSlots out;
    out.slots = static_cast<int32_t>(fit.slots.size());
    for (const int32_t slot : fit.slots) {
      const auto key = from.keys.begin() + static_cast<std::ptrdiff_t>(slot * key_bytes);
      out.keys.insert(out.keys.end(), key, key + static_cast<std::ptrdiff_t>(key_bytes));
      out.positions.push_back(static_cast<int32_t>(state_.info().first_position + slot));
    }
    out.values = Narrow(fit.values, state_.info().element_type);
    out.beta.assign(fit.beta.begin(), fit.beta.end());
    return out;
  }

  std::vector<std::vector<TurnShare>> SharesOf(const HeadFit& fit) const {
    std::vector<std::vector<TurnShare>> slots;
    for (Eigen::Index slot = 0; slot < fit.provenance.rows(); ++slot) {
      std::vector<TurnShare>& shares = slots.emplace_back();
      for (Eigen::Index turn = 0; turn < fit.provenance.cols(); ++turn) {
        shares.push_back(
            {state_.info().turns[static_cast<size_t>(turn)].turn, fit.provenance(slot, turn)});
      }
      std::ranges::stable_sort(shares, std::ranges::greater(),
                               [](const TurnShare& share) { return std::abs(share.share); });
      if (shares.size() > kSharesKept) shares.resize(kSharesKept);
    }
    return slots;
  }

 private:
  const kv::Stream& Stream(int layer) const {
    return state_.geometry().layers[static_cast<size_t>(layer)];
  }

  base::Status CheckLayer(int layer) const {
    const kv::Stream& stream = Stream(layer);
    const kv::LayerCapture& from = capture_.layers[static_cast<size_t>(layer)];
    const auto rows = static_cast<size_t>(capture_.rows),
               q_heads = static_cast<size_t>(capture_.q_heads);
    const auto width = static_cast<size_t>(stream.k_width);
    bool fits =
        capture_.rows > 0 && capture_.q_heads > 0 && capture_.q_heads % stream.kv_heads == 0 &&
        std::ssize(from.keys) == stream.kv_heads && from.queries.size() == rows * q_heads * width &&
        from.log_sum_exp.size() == rows * q_heads;
    for (const auto& keys : from.keys) {
      fits = fits && keys.size() == static_cast<size_t>(capture_.slots) * width;
    }
    if (fits) return base::OkStatus();
    return base::InvalidArgument(
        "layer {} of the capture does not fit the state's {} KV heads of width {}", layer,
        stream.kv_heads, stream.k_width);
  }

  const kv::KvSegment& state_;
  const kv::StateCapture& capture_;
  const CompactionOptions& options_;
  std::vector<Head> heads_;
  std::vector<int32_t> group_of_;
};

// fn(head) for all heads in parallel; the error of the first head that failed.
base::Status ForHeads(int64_t heads, base::ThreadPool& pool, const std::atomic<bool>& cancelled,
                      const std::function<base::Status(int64_t head)>& fn) {
  std::vector<base::Status> status(static_cast<size_t>(heads));
  pool.ParallelFor(heads, [&](int64_t head, int) {
    status[static_cast<size_t>(head)] =
        cancelled ? base::Cancelled("the compaction was cancelled") : fn(head);
  });
  for (const base::Status& one : status) KVASIR_RETURN_IF_ERROR(one);
  return base::OkStatus();
}

}  // namespace

base::StatusOr<std::vector<CompactedState>> CompactStates(
    const kv::KvSegment& state, const kv::StateCapture& capture, std::span<const double> ratios,
    const CompactionOptions& options, base::ThreadPool& pool, const std::atomic<bool>& cancelled) {
  const Compactor compactor(state, capture, options);
  KVASIR_RETURN_IF_ERROR(compactor.Check());
  for (const double ratio : ratios) {
    if (!(ratio >= 1) || !std::isfinite(ratio)) {
      return base::InvalidArgument("ratio {}, must be at least 1", ratio);
    }
  }
  const int64_t heads = compactor.heads();
  std::vector<VectorF> scores(static_cast<size_t>(heads));
  const base::Status scored = ForHeads(heads, pool, cancelled, [&](int64_t head) -> base::Status {
    const HeadCapture of_head = compactor.CaptureOf(head);
    KVASIR_RETURN_IF_ERROR(Validate(of_head));
    scores[static_cast<size_t>(head)] = SlotScores(MakeTeacher(of_head));
    return base::OkStatus();
  });
  KVASIR_RETURN_IF_ERROR(scored);

  std::vector<std::vector<int64_t>> budgets;
  for (const double ratio : ratios) {
    const double total = static_cast<double>(heads * capture.slots) / ratio;
    budgets.push_back(GlobalBudgets(scores, std::llround(total), options.floor_share));
  }
  std::vector<std::vector<kv::HeadSlots>> slots(ratios.size());
  std::vector<CompactedState> results(ratios.size());
  for (size_t i = 0; i < ratios.size(); ++i) {
    slots[i].resize(static_cast<size_t>(heads));
    results[i].provenance.resize(static_cast<size_t>(heads));
  }
  const base::Status fitted = ForHeads(heads, pool, cancelled, [&](int64_t head) -> base::Status {
    const auto at = static_cast<size_t>(head);
    int64_t most = 0;
    for (const auto& budget : budgets) most = std::max(most, budget[at]);
    KVASIR_ASSIGN_OR_RETURN(const HeadSolver solver, compactor.SolverOf(head, most));
    for (size_t i = 0; i < ratios.size(); ++i) {
      const HeadFit fit = solver.Fit(budgets[i][at]);
      slots[i][at] = compactor.SlotsOf(head, fit);
      results[i].provenance[at] = compactor.SharesOf(fit);
    }
    return base::OkStatus();
  });
  KVASIR_RETURN_IF_ERROR(fitted);
  for (size_t i = 0; i < ratios.size(); ++i) {
    KVASIR_ASSIGN_OR_RETURN(
        results[i].segment,
        kv::KvSegment::Create(state.geometry(), state.info(), std::move(slots[i])));
  }
  return results;
}

}  // namespace kvasir::compaction

#include "compaction/solver/select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.h"

namespace kvasir::compaction {
namespace {

// The pursuit's state: chosen slots and the lower Cholesky factor of G_II + ridge.
class Pursuit {
 public:
  Pursuit(const MatrixF& gram, int64_t count, const PursuitOptions& options)
      : gram_(gram),
        options_(options),
        target_(gram.cast<double>().rowwise().sum()),
        open_(gram.rows(), true) {
    ridge_ = options.ridge * gram.diagonal().cast<double>().mean();
    factor_.resize(count, count);
  }

  // Takes slots until there are `count` or none is left.
  void Fill(int64_t count) {
    while (size() < count) {
      const std::vector<int32_t> best = Best(std::min<int64_t>(options_.step, count - size()));
      if (best.empty()) return;
      for (const int32_t slot : best) Take(slot);
      Solve();
    }
  }

  // Drops the slots of small weight for good.
  void Drop() {
    std::vector<int32_t> kept;
    for (int64_t i = 0; i < size(); ++i) {
      if (weights_[i] >= options_.drop_below) kept.push_back(chosen_[i]);
    }
    if (kept.size() == chosen_.size()) return;
    chosen_.clear();
    for (const int32_t slot : kept) Take(slot);
    Solve();
  }

  const std::vector<int32_t>& chosen() const { return chosen_; }

 private:
  int64_t size() const { return static_cast<int64_t>(chosen_.size()); }

  // The open slots whose correlation with the residual is largest.
  std::vector<int32_t> Best(int64_t count) const {
    VectorD correlation = target_;
    for (int64_t i = 0; i < size(); ++i) {
      correlation -= weights_[i] * gram_.row(chosen_[i]).transpose().cast<double>();
    }
    return LargestOpen(correlation, open_, count);
  }

  void Take(int32_t slot) {
    open_[slot] = false;
    const int64_t n = size();
    VectorD row(n);
    for (int64_t i = 0; i < n; ++i) row[i] = gram_(slot, chosen_[i]);
    if (n > 0) factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>().solveInPlace(row);
    // A slot that the others span already leaves rounding here: its pivot is kept positive, so its
    // weight stays finite.
    const double diagonal = gram_(slot, slot) + ridge_;
    const double pivot = std::max(diagonal - row.squaredNorm(), std::max(1e-12 * diagonal, 1e-300));
    factor_.row(n).head(n) = row.transpose();
    factor_(n, n) = std::sqrt(pivot);
    chosen_.push_back(slot);
  }

  void Solve() {
    const int64_t n = size();
    VectorD w(n);
    for (int64_t i = 0; i < n; ++i) w[i] = target_[chosen_[i]];
    const auto lower = factor_.topLeftCorner(n, n).triangularView<Eigen::Lower>();
    lower.solveInPlace(w);
    lower.transpose().solveInPlace(w);
    weights_ = w.cwiseMax(options_.weight_min).cwiseMin(options_.weight_max);
  }

  const MatrixF& gram_;
  const PursuitOptions& options_;
  const VectorD target_;    // c = G 1
  std::vector<bool> open_;  // neither taken nor dropped
  double ridge_ = 0;
  std::vector<int32_t> chosen_;
  MatrixD factor_;   // its top left corner
  VectorD weights_;  // of the chosen
};

}  // namespace

MatrixF MassGram(const Teacher& teacher) {
  const MatrixF mass = teacher.alpha.cast<float>().asDiagonal() * teacher.attention;
  return Gram(mass);
}

MatrixF OutputAwareGram(const MatrixF& mass_gram, const Teacher& teacher, const MatrixF& values) {
  const MatrixF centred = values.rowwise() - teacher.outputs.colwise().mean();
  const float gamma = centred.squaredNorm() / static_cast<float>(centred.rows());
  MatrixF gram = centred * centred.transpose();
  gram.array() += gamma;
  return gram.cwiseProduct(mass_gram);
}

std::vector<int32_t> Pursue(const MatrixF& gram, int64_t count, const PursuitOptions& options) {
  KVASIR_CHECK(gram.rows() == gram.cols() && count >= 0 && options.step > 0);
  if (count >= gram.rows()) {
    std::vector<int32_t> all(gram.rows());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (count == 0) return {};
  Pursuit pursuit(gram, count, options);
  pursuit.Fill(count);
  if (options.drop_below > 0) {
    pursuit.Drop();
    pursuit.Fill(count);
  }
  return pursuit.chosen();
}

std::vector<int32_t> LargestOpen(const VectorD& scores, const std::vector<bool>& open,
                                 int64_t count) {
  KVASIR_CHECK(scores.size() == static_cast<Eigen::Index>(open.size()));
  std::vector<int32_t> order;
  for (int32_t slot = 0; slot < scores.size(); ++slot) {
    if (open[slot]) order.push_back(slot);
  }
  count = std::min<int64_t>(count, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  order.resize(count);
  return order;
}

}  // namespace kvasir::compaction

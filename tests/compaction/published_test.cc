// Method: Attention Matching as published against fixtures of three real heads, solved in float64
// by NumPy. Goal: the parts it shares with the shipped recipe (attention, least squares, value fit)
// are right to the fixtures' tolerances.
#include "eval/compaction/published.h"

#include <gtest/gtest.h>

#include "compaction/solver/fit.h"
#include "tests/compaction/fixtures.h"

namespace kvasir::eval {
namespace {

using compaction::HeadFixture;
using compaction::MatrixF;
using compaction::Teacher;
using compaction::VectorD;
using compaction::VectorF;

double RelativeError(const MatrixF& actual, const MatrixF& expected) {
  return (actual - expected).norm() / expected.norm();
}

void ExpectWithinAPercent(double actual, double expected, const char* what) {
  EXPECT_NEAR(actual, expected, 0.01 * expected) << what;
}

class Published : public testing::TestWithParam<const char*> {
 protected:
  Published()
      : head_(compaction::ReadHeadFixture(GetParam())),
        teacher_(compaction::MakeTeacher(head_.capture)) {}

  void ExpectFixture(const PublishedFit& fit, const std::string& tag, bool weighted) {
    SCOPED_TRACE(tag);
    const VectorF beta = head_.Vector(tag + "_beta");
    ASSERT_EQ(fit.beta.size(), beta.size());
    for (Eigen::Index i = 0; i < beta.size(); ++i) {
      if (beta[i] > -7) {
        EXPECT_NEAR(fit.beta[i], beta[i], 1e-3) << i;
      } else {
        EXPECT_LT(fit.beta[i], -20) << i;
      }
    }
    EXPECT_LE(RelativeError(fit.values, head_.Matrix(tag + "_cv")), 1e-3);
    ExpectErrors(fit, tag, weighted);
  }

  // The errors of step 5 of the fixtures' README.
  void ExpectErrors(const PublishedFit& fit, const std::string& tag, bool weighted) {
    const auto& expected = head_.expected.at(tag);
    const MatrixF kept = compaction::KeptAttention(head_.capture, fit.slots, fit.beta);
    const MatrixF outputs = kept * fit.values;
    ExpectWithinAPercent(RelativeError(outputs, head_.outputs), expected.at("out_rel"), "out_rel");
    if (weighted) {
      const auto alpha = head_.alpha.asDiagonal();
      ExpectWithinAPercent(RelativeError(alpha * outputs, alpha * head_.outputs),
                           expected.at("out_rel_alpha"), "weighted");
    }
    double error = 0;
    for (Eigen::Index i = 0; i < kept.rows(); ++i) {
      double mass = 0;
      for (size_t j = 0; j < fit.slots.size(); ++j) {
        const double logit =
            head_.capture.scale * head_.capture.queries.row(i).cast<double>().dot(
                                      head_.capture.keys.row(fit.slots[j]).cast<double>());
        mass += std::exp(logit + fit.beta[static_cast<Eigen::Index>(j)] - head_.log_mass[i]);
      }
      error += std::abs(mass - 1) / static_cast<double>(kept.rows());
    }
    ExpectWithinAPercent(error, expected.at("mass_rel_mean"), "mass_rel_mean");
  }

  const HeadFixture head_;
  const Teacher teacher_;
};

TEST_P(Published, TheTeacherIsTheBlocksOwnAttention) {
  EXPECT_LE(RelativeError(teacher_.outputs, head_.outputs), 1e-5);
  EXPECT_LE((teacher_.log_mass.cast<float>() - head_.log_mass).cwiseAbs().maxCoeff(), 1e-4);
  EXPECT_LE((teacher_.alpha.cast<float>() - head_.alpha).cwiseAbs().maxCoeff(), 1e-5);
}

TEST_P(Published, HighestAttentionTakesTheSameSlotsAndFitsThem) {
  for (const auto& [tag, count] : {std::pair("ha_r4", 64), std::pair("ha_r10", 25)}) {
    const PublishedFit fit = HighestAttention(head_.capture, teacher_, count);
    EXPECT_EQ(fit.slots, head_.Indices(std::string(tag) + "_idx")) << tag;
    ExpectFixture(fit, tag, /*weighted=*/false);
  }
}

TEST_P(Published, MatchingPursuitTakesTheSameSlotsInTheSameOrder) {
  for (const int step : {1, 4}) {
    for (const bool weighted : {false, true}) {
      for (const auto& [ratio, count] : {std::pair("r4", 64), std::pair("r10", 25)}) {
        const std::string tag =
            std::string(weighted ? "ompw" : "omp") + "_k" + std::to_string(step) + "_" + ratio;
        const PublishedFit fit =
            MatchingPursuit(head_.capture, teacher_, count, {.step = step, .weighted = weighted});
        EXPECT_EQ(fit.slots, head_.Indices(tag + "_order")) << tag;
        ExpectFixture(fit, tag, weighted);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, Published, testing::Values("head0", "head1", "head2"));

}  // namespace
}  // namespace kvasir::eval

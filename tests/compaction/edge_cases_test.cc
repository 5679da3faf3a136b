// Method: blocks at the edges of what can occur. Goal: every fit is finite, of the size asked for,
// and repeats exactly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "compaction/solver/fit.h"
#include "compaction/solver/head_fit.h"
#include "tests/compaction/random_capture.h"

namespace kvasir::compaction {
namespace {

HeadSolver Solver(HeadCapture capture) {
  const auto slots = capture.keys.rows();
  auto solver = HeadSolver::Create(std::move(capture), std::vector<int32_t>(slots, 0), 1, {});
  EXPECT_TRUE(solver.ok()) << solver.status();
  return *std::move(solver);
}

void ExpectSound(const HeadFit& fit, int64_t count) {
  ASSERT_EQ(fit.slots.size(), count);
  EXPECT_EQ(fit.beta.size(), count);
  EXPECT_EQ(fit.values.rows(), count);
  EXPECT_TRUE(std::is_sorted(fit.slots.begin(), fit.slots.end()));
  EXPECT_EQ(std::adjacent_find(fit.slots.begin(), fit.slots.end()), fit.slots.end());
  EXPECT_TRUE(fit.beta.allFinite());
  EXPECT_TRUE(fit.values.allFinite());
  for (const float beta : fit.beta) EXPECT_LE(std::abs(beta), kLogWeightMax + 1e-4);
}

TEST(HeadSolver, OneSlotStaysAsItIs) {
  const HeadCapture capture = RandomCapture(1, 1, 10, 8);
  const HeadFit fit = Solver(capture).Fit(1);
  ExpectSound(fit, 1);
  EXPECT_EQ(fit.values, capture.values);
  EXPECT_EQ(fit.beta[0], 0);
}

TEST(HeadSolver, NoSlotsLeaveNothing) {
  ExpectSound(Solver(RandomCapture(2, 20, 30, 8)).Fit(0), 0);
}

TEST(HeadSolver, OneOfManyCarriesTheMeanOutput) {
  ExpectSound(Solver(RandomCapture(3, 20, 30, 8)).Fit(1), 1);
}

TEST(HeadSolver, AsManyAsThereAreStayAsTheyAre) {
  const HeadCapture capture = RandomCapture(4, 12, 30, 8);
  for (const int64_t count : {12, 13, 1000}) {
    const HeadFit fit = Solver(capture).Fit(count);
    ExpectSound(fit, 12);
    EXPECT_EQ(fit.values, capture.values);
  }
}

TEST(HeadSolver, EqualKeysAreOneKeyOfTheirJointMass) {
  HeadCapture capture = RandomCapture(5, 24, 40, 8);
  capture.keys.rowwise() = capture.keys.row(0).eval();
  const HeadFit fit = Solver(capture).Fit(4);
  ExpectSound(fit, 4);
  EXPECT_NEAR(fit.beta.array().exp().sum(), 24,
              0.5);  // alike for every query: the weights add up to all slots
}

TEST(HeadSolver, DuplicatesDoNotBreakTheFactor) {
  HeadCapture capture = RandomCapture(6, 64, 200, 8);
  for (Eigen::Index i = 1; i < 64; i += 2) {
    capture.keys.row(i) = capture.keys.row(i - 1);
    capture.values.row(i) = capture.values.row(i - 1);
  }
  ExpectSound(Solver(capture).Fit(40), 40);
}

TEST(HeadSolver, QueriesThatNeverLookHereStillGiveAFit) {
  HeadCapture capture = RandomCapture(7, 32, 50, 8);
  capture.log_sum_exp.array() += 2000;  // alpha underflows to zero
  const HeadFit fit = Solver(capture).Fit(5);
  ExpectSound(fit, 5);
  for (const int32_t slot : fit.slots) {
    EXPECT_EQ(
        fit.values.row(std::find(fit.slots.begin(), fit.slots.end(), slot) - fit.slots.begin()),
        capture.values.row(slot));
  }
}

TEST(HeadSolver, FewerRowsThanSlots) {
  ExpectSound(Solver(RandomCapture(8, 100, 3, 8)).Fit(50), 50);
}

TEST(HeadSolver, HugeLogitsStayFinite) {
  HeadCapture capture = RandomCapture(9, 40, 60, 8);
  capture.queries *= 1e4F;
  capture.log_sum_exp = VectorD::Constant(60, 1e9);
  capture.log_sum_exp = MakeTeacher(capture).log_mass;
  ExpectSound(Solver(capture).Fit(10), 10);
}

TEST(HeadSolver, TheSameCaptureGivesTheSameBytes) {
  const HeadCapture capture = RandomCapture(10, 96, 300, 16);
  const HeadFit first = Solver(capture).Fit(20), second = Solver(capture).Fit(20);
  EXPECT_EQ(first.slots, second.slots);
  EXPECT_EQ(first.beta, second.beta);
  EXPECT_EQ(first.values, second.values);
}

TEST(HeadSolver, MoreSlotsMeanASmallerError) {
  const HeadCapture capture = RandomCapture(11, 128, 500, 16);
  const HeadSolver solver = Solver(capture);
  double before = std::numeric_limits<double>::infinity();
  for (const int64_t count : {4, 16, 64, 128}) {
    const HeadFit fit = solver.Fit(count);
    const MatrixF kept = KeptAttention(capture, fit.slots, fit.beta.cast<double>());
    const double error = (solver.teacher().alpha.cast<float>().asDiagonal() *
                          (kept * fit.values - solver.teacher().outputs))
                             .norm();
    EXPECT_LT(error, before) << count;
    before = error;
  }
  EXPECT_LT(before, 1e-3);
}

TEST(HeadSolver, NamesWhatIsWrongWithACapture) {
  const HeadCapture good = RandomCapture(12, 8, 8, 4);
  const auto message = [](HeadCapture capture,
                          std::vector<int32_t> groups = std::vector<int32_t>(8, 0)) {
    return std::string(base::ToStd(
        HeadSolver::Create(std::move(capture), std::move(groups), 1, {}).status().message()));
  };
  HeadCapture bad = good;
  bad.values.conservativeResize(7, 4);
  EXPECT_THAT(message(bad), testing::HasSubstr("7 values for 8 keys"));
  bad = good;
  bad.queries(3, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message(bad), testing::HasSubstr("not finite"));
  bad = good;
  bad.log_sum_exp.conservativeResize(3);
  EXPECT_THAT(message(bad), testing::HasSubstr("3 log-sum-exps for 8"));
  bad = good;
  bad.keys.resize(0, 4);
  EXPECT_THAT(message(bad, {}), testing::HasSubstr("without slots"));
  EXPECT_THAT(message(good, std::vector<int32_t>(8, 1)), testing::HasSubstr("slot group 1"));
}

TEST(Provenance, ASlotsShareOfItsOwnTurnGrowsWithItsAttention) {
  HeadCapture capture = RandomCapture(13, 40, 200, 8);
  std::vector<int32_t> turn(40);
  for (int i = 0; i < 40; ++i) turn[i] = i / 10;
  const auto solver = HeadSolver::Create(capture, turn, 4, {});
  ASSERT_TRUE(solver.ok());
  const HeadFit fit = solver->Fit(12);
  ASSERT_EQ(fit.provenance.rows(), 12);
  // C_v is linear in V: moving the values of one turn by a constant moves it by the turn's
  // provenance.
  for (int group = 0; group < 4; ++group) {
    HeadCapture moved = capture;
    for (int i = group * 10; i < group * 10 + 10; ++i) moved.values.row(i).array() += 1;
    const Teacher teacher = MakeTeacher(moved);
    const MatrixF kept = KeptAttention(moved, fit.slots, fit.beta.cast<double>());
    const MatrixF values =
        FitValues(moved, teacher, fit.slots, kept, teacher.alpha, FitOptions{}.value_ridge);
    const MatrixF difference = (values - fit.values).colwise() - fit.provenance.col(group);
    EXPECT_LE(difference.cwiseAbs().maxCoeff(), 1e-3) << group;
  }
}

}  // namespace
}  // namespace kvasir::compaction

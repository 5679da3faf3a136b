// Append, Mount and Attend of every backend, in every case: against the reference in double on the
// same stored keys within a computed tolerance, and bit for bit against each other and against
// themselves put together differently. Slots that no row may see hold NaN throughout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/engine/kernels/attention_cases.h"
#include "tests/engine/kernels/attention_world.h"
#include "tests/engine/kernels/subjects.h"

namespace kvasir::kernels::testing {
namespace {

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string NameOf(const Subject& subject, const WorldSpec& spec) {
  return subject.name + (subject.precision == Precision::kFloat ? "-float: " : ": ") + spec.name +
         " " + std::to_string(spec.q_heads) + "/" + std::to_string(spec.kv_heads) + " window " +
         std::to_string(spec.window);
}

std::vector<float> RunOn(const Subject& subject, const WorldSpec& spec, int threads = 1,
                         const RunOptions& options = {}) {
  base::ThreadPool pool(threads);
  const auto backend = subject.make(pool);
  return AttentionWorld(spec, *backend).Run(options);
}

TEST(Attention, AgreesWithTheReferenceOnTheSameKeys) {
  base::ThreadPool pool(2);
  for (const Subject& subject : AllSubjects()) {
    const auto backend = subject.make(pool);
    for (const WorldSpec& spec : AttentionCases()) {
      SCOPED_TRACE(NameOf(subject, spec));
      AttentionWorld world(spec, *backend);
      const std::vector<float> out = world.Run();
      const std::vector<float> expected = world.Reference(pool);
      const float of_output = world.Tolerance();
      ASSERT_LT(of_output, 0.02f * spec.v_size);
      ASSERT_EQ(out.size(), expected.size());
      for (size_t i = 0; i < out.size(); ++i) {
        const bool is_log_sum_exp = i % (spec.v_width + 1) == static_cast<size_t>(spec.v_width);
        const float tolerance = is_log_sum_exp
                                    ? of_output / spec.v_size + std::fabs(expected[i]) * 0x1p-23f
                                    : of_output;
        ASSERT_TRUE(out[i] == expected[i] || std::fabs(out[i] - expected[i]) <= tolerance)
            << "output " << i << ": " << out[i] << ", reference " << expected[i] << " ± "
            << tolerance;
      }
    }
  }
}

TEST(Attention, AllPathsGiveTheSameBits) {
  for (const Precision precision : {Precision::kFast, Precision::kFloat}) {
    const std::vector<Subject> subjects = Subjects(precision);
    for (const WorldSpec& spec : AttentionCases()) {
      const std::vector<float> expected = RunOn(subjects.front(), spec);
      for (const Subject& subject : subjects) {
        EXPECT_TRUE(SameBits(RunOn(subject, spec), expected)) << NameOf(subject, spec);
      }
    }
  }
}

TEST(Attention, ChunksThreadsAndBatchDoNotChangeABit) {
  for (const Precision precision : {Precision::kFast, Precision::kFloat}) {
    const Subject subject = Subjects(precision).back();
    for (const WorldSpec& spec : AttentionCases()) {
      SCOPED_TRACE(NameOf(subject, spec));
      const std::vector<float> expected = RunOn(subject, spec);
      for (const int64_t chunk : {1, 63, 64, 65}) {
        EXPECT_TRUE(SameBits(RunOn(subject, spec, 1, {.chunk = chunk}), expected)) << chunk;
      }
      for (const int threads : {2, 3}) {
        EXPECT_TRUE(SameBits(RunOn(subject, spec, threads), expected)) << threads << " threads";
        EXPECT_TRUE(SameBits(RunOn(subject, spec, threads, {.chunk = 1}), expected)) << threads;
      }
      EXPECT_TRUE(SameBits(RunOn(subject, spec, 1, {.one_by_one = true}), expected));
    }
  }
}

// [0, n) in the tail; the first 100 mounted; mounted in two pieces.
TEST(Attention, MountAtFrameZeroGivesTheBitsOfTheTail) {
  const SequenceSpec tail = {.tail_begin = 0, .first_position = 300, .rows = 70};
  const SequenceSpec one = {
      .mounts = {{.begin = 0, .end = 300}}, .tail_begin = 300, .first_position = 300, .rows = 70};
  const SequenceSpec two = {.mounts = {{.begin = 0, .end = 131}, {.begin = 131, .end = 300}},
                            .tail_begin = 300,
                            .first_position = 300,
                            .rows = 70};
  for (const Subject& subject : AllSubjects()) {
    WorldSpec spec = {.name = "tail", .q_heads = 4, .kv_heads = 2, .sequences = {tail}};
    const std::vector<float> expected = RunOn(subject, spec);
    for (const SequenceSpec& other : {one, two}) {
      spec.sequences = {other};
      EXPECT_TRUE(SameBits(RunOn(subject, spec), expected)) << NameOf(subject, spec);
    }
  }
}

TEST(Attention, CuttingASpanInTwoOfTheSameFrameDoesNotChangeABit) {
  const SequenceSpec whole = {.mounts = {{.begin = 37, .end = 700, .frame = 37}},
                              .tail_begin = 700,
                              .first_position = 700,
                              .rows = 5};
  for (const Subject& subject : AllSubjects()) {
    WorldSpec spec = {.name = "whole", .q_heads = 7, .kv_heads = 1, .sequences = {whole}};
    const std::vector<float> expected = RunOn(subject, spec);
    for (const int64_t cut : {38, 100, 101, 256, 511}) {
      spec.sequences[0].mounts = {{.begin = 37, .end = cut, .frame = 37},
                                  {.begin = cut, .end = 700, .frame = 37}};
      EXPECT_TRUE(SameBits(RunOn(subject, spec), expected)) << subject.name << " cut at " << cut;
    }
  }
}

// Infinite queries make every score NaN; queries near the largest float keep scores finite.
TEST(Attention, ScoresThatAreNaNGiveNaNAndNotZeros) {
  for (const Subject& subject : AllSubjects()) {
    base::ThreadPool pool(1);
    const auto backend = subject.make(pool);
    WorldSpec spec = {.name = "poison", .sequences = {{.rows = 4}, {.rows = 4}}};
    spec.q_size = std::numeric_limits<float>::infinity();
    const std::vector<float> out = AttentionWorld(spec, *backend).Run();
    for (const float x : out) EXPECT_TRUE(std::isnan(x)) << subject.name;
    spec.q_size = 1e30f;
    for (const float x : AttentionWorld(spec, *backend).Run()) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(Attention, ARowThatSeesNothingGivesZeros) {
  WorldSpec spec = {.name = "nothing", .sequences = {{.rows = 1}}};
  for (const Subject& subject : AllSubjects()) {
    base::ThreadPool pool(1);
    const auto backend = subject.make(pool);
    const KvLayout layout(backend->kv_type(),
                          std::vector<LayerStreams>{{.kv_heads = 1, .k_width = 8, .v_width = 8}});
    const RopeTable rope({.rotated = 8, .positions_max = 16});
    const std::vector<SequenceRows> rows = {{.rows = 1, .first_position = 5}};
    const std::vector<float> q(8, 1.0f);
    std::vector<float> out(8, 7.0f);
    float log_sum_exp = 7;
    backend->Attend({.layout = &layout,
                     .rope = &rope,
                     .sequences = rows,
                     .q = q.data(),
                     .q_stride = 8,
                     .q_heads = 1,
                     .out = out.data(),
                     .log_sum_exp = &log_sum_exp});
    EXPECT_EQ(log_sum_exp, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(out, std::vector<float>(8, 0.0f)) << subject.name;
  }
}

}  // namespace
}  // namespace kvasir::kernels::testing

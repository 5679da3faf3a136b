// Rebuilds: states of another model or build are made anew from text, durably, once, in the
// background; until then the old one stays, and one of another build stays in use.
#include "memory/service/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

using testing::IsEmpty;

MemoryRecord ClosedMemory(World& world, const std::string& session, const std::string& text) {
  world.Create(kAnn, session);
  const MemoryRecord memory = world.Learn(kAnn, session, text, "noted");
  EXPECT_TRUE(world.sessions().Close(kAnn, session).ok());
  return memory;
}

// A turn of a new session looks for memories.
void Encounter(World& world, const std::string& message = "boat") {
  const auto candidates = world.memories().Candidates(kAnn, "another", message);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
}

int64_t Waiting(World& world) { return world.tier().GetStats().jobs_pending; }

MemoryRecord Now(World& world, const MemoryRecord& memory) {
  return world.memories().Get(kAnn, memory.name).value_or(MemoryRecord());
}

std::string ReasonOfLoad(World& world, const MemoryRecord& memory) {
  const auto loaded = world.Load(kAnn, Now(world, memory));
  return loaded.ok() ? "" : base::Reason(loaded.status());
}

TEST(Rebuild, MemoriesOfAnotherModelAreBuiltFromTextAndBackAgain) {
  World world;
  const MemoryRecord first = ClosedMemory(world, "s", "my boat");
  const MemoryRecord second = ClosedMemory(world, "t", "my cat");
  world.builder.model = TestModel(2);
  world.Reopen();
  EXPECT_EQ(Waiting(world), 0);  // nobody asked for them
  Encounter(world);
  EXPECT_EQ(Waiting(world), 2);
  Encounter(world);
  EXPECT_EQ(Waiting(world), 2);  // once each
  EXPECT_EQ(ReasonOfLoad(world, first), "MODEL_MISMATCH");
  EXPECT_EQ(Now(world, first).parts.at(0).id, first.parts.at(0).id);  // stays until it is replaced
  EXPECT_EQ(Now(world, first).state, MemoryRecord::State::kExact);
  world.Reopen();  // the jobs are durable
  EXPECT_EQ(RunJobs(world), 2);
  ASSERT_EQ(world.builder.built.size(), 2u);
  for (const kv::BuilderSession& built : world.builder.built) {
    EXPECT_EQ(built.turns.at(0).assistant_text, "noted");
    EXPECT_THAT(built.turns.at(0).assistant_tokens, IsEmpty());  // ids of the other model
  }
  for (const MemoryRecord& memory : {first, second}) {
    EXPECT_EQ(ReasonOfLoad(world, memory), "");
    EXPECT_EQ(Now(world, memory).model_id_hex, TestModel(2).digest.Hex());
  }
  Encounter(world);
  EXPECT_EQ(Waiting(world), 0);
  EXPECT_THAT(world.Findings(Repair::kNo), IsEmpty());

  world.builder.model = TestModel(1);
  world.Reopen();
  EXPECT_EQ(ReasonOfLoad(world, first), "MODEL_MISMATCH");
  Encounter(world);
  EXPECT_EQ(RunJobs(world), 2);
  EXPECT_EQ(ReasonOfLoad(world, first), "");
  EXPECT_THAT(world.builder.built.at(2).turns.at(0).assistant_tokens, testing::Not(IsEmpty()));
  EXPECT_THAT(world.Findings(Repair::kNo), IsEmpty());
}

TEST(Rebuild, ARebuildThatDidNotRunBeforeTheModelCameBackHasNothingToDo) {
  World world;
  const MemoryRecord memory = ClosedMemory(world, "s", "my boat");
  world.builder.model = TestModel(2);
  world.Reopen();
  Encounter(world);
  world.builder.model = TestModel(1);
  world.Reopen();
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_THAT(world.builder.built, IsEmpty());
  EXPECT_EQ(ReasonOfLoad(world, memory), "");
}

TEST(Rebuild, FewWaitAtATimeAndThoseThatFitTheMessageComeFirst) {
  World world;
  const int count = static_cast<int>(kRebuildsQueuedMax) + 3;
  const MemoryRecord oldest = ClosedMemory(world, "s", "my yellow submarine");
  for (int i = 1; i < count; ++i) ClosedMemory(world, "s" + std::to_string(i), "my boat");
  world.builder.model = TestModel(2);
  world.Reopen();
  Encounter(world, "where is the submarine");
  EXPECT_EQ(Waiting(world), kRebuildsQueuedMax);
  EXPECT_EQ(RunJobs(world), kRebuildsQueuedMax);
  EXPECT_EQ(ReasonOfLoad(world, oldest), "");
  Encounter(world);
  EXPECT_EQ(RunJobs(world), 3);
  Encounter(world);
  EXPECT_EQ(Waiting(world), 0);
}

TEST(Rebuild, RebuildsLeaveHalfOfTheQueueToOtherWork) {
  World world([](TierOptions& options) { options.jobs_max = 4; });
  for (int i = 0; i < 5; ++i) ClosedMemory(world, "s" + std::to_string(i), "my boat");
  world.builder.model = TestModel(2);
  world.Reopen();
  Encounter(world);
  EXPECT_EQ(Waiting(world), 2);
}

TEST(Rebuild, AStateOfAnotherBuildIsUsedUntilItIsMadeAnew) {
  World world;
  const MemoryRecord closed = ClosedMemory(world, "s", "my boat");
  world.Create(kAnn, "open");
  const MemoryRecord open = world.Learn(kAnn, "open", "my cat", "noted");
  world.builder.build.text += ";new";
  world.Reopen();
  Encounter(world);
  EXPECT_EQ(Waiting(world), 1);  // the open session's state is its checkpoint
  EXPECT_EQ(ReasonOfLoad(world, closed), "");
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(ReasonOfLoad(world, closed), "");
  EXPECT_EQ(Now(world, closed).build_id, world.builder.build.text);
  EXPECT_NE(Now(world, closed).parts.at(0).id, closed.parts.at(0).id);
  // What is said further does not turn the old state into one that claims to be new.
  const TurnRecord turn = world.Say(kAnn, "open", "it is red", "noted");
  KVASIR_ASSERT_OK(world.Save(kAnn, "open", turn.number));
  EXPECT_EQ(Now(world, open).build_id, open.build_id);
  EXPECT_EQ(ReasonOfLoad(world, open), "");
  KVASIR_ASSERT_OK(world.sessions().Close(kAnn, "open").status());
  EXPECT_EQ(Now(world, open).state, MemoryRecord::State::kStale);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(Now(world, open).build_id, world.builder.build.text);
  EXPECT_THAT(Now(world, open).source_turns, testing::ElementsAre(1, 2));
  EXPECT_EQ(ReasonOfLoad(world, open), "");
  EXPECT_THAT(world.Findings(Repair::kNo), IsEmpty());
}

TEST(Rebuild, OneThatCannotBeIsTriedOnceAndTheOldStateStays) {
  World world;
  const MemoryRecord memory = ClosedMemory(world, "s", "my boat");
  world.builder.model = TestModel(2);
  world.builder.during_build = [](const std::atomic<bool>&) {
    return base::InvalidArgument("longer than the context");
  };
  world.Reopen();
  for (int i = 0; i < 3; ++i) {
    Encounter(world);
    RunJobs(world);
  }
  EXPECT_EQ(world.builder.built.size(), 1u);
  EXPECT_EQ(ReasonOfLoad(world, memory), "MODEL_MISMATCH");
  world.builder.model = TestModel(1);
  world.Reopen();
  EXPECT_EQ(ReasonOfLoad(world, memory), "");
}

// A turn that looks for memories while rebuilds wait or are tried again changes nothing of them.
TEST(Rebuild, AWaitingRebuildIsLeftAlone) {
  World world;
  const MemoryRecord memory = ClosedMemory(world, "s", "my boat");
  world.builder.model = TestModel(2);
  world.builder.during_build = [](const std::atomic<bool>&) {
    return base::Unavailable("try again");
  };
  world.Reopen();
  Encounter(world);
  EXPECT_TRUE(world.tier().RunOneJob());
  Encounter(world);
  EXPECT_FALSE(world.tier().RunOneJob());  // it waits for its second attempt
  EXPECT_EQ(Now(world, memory).state, MemoryRecord::State::kExact);
  world.builder.during_build = nullptr;
  world.clock.Advance(10 * kSecond);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(ReasonOfLoad(world, memory), "");
}

}  // namespace
}  // namespace kvasir::service

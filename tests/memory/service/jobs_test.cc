// Jobs: memories of sessions that are not promotable are built behind, durably; retries end.
#include <gtest/gtest.h>

#include <thread>

#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

// A session whose state may not become a memory, with one turn.
void SayBehindOwnPrompt(World& world, const std::string& name, const std::string& text) {
  SessionRecord wanted;
  wanted.name = name;
  wanted.system_prompt = "be brief";
  ASSERT_TRUE(world.sessions().Create(kAnn, wanted).ok());
  world.Say(kAnn, name, text, "reply");
}

TEST(Jobs, ClosingQueuesABuildAndUntilThenTheMemoryIsNotReady) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  EXPECT_TRUE(world.memories().List(kAnn, {})->items.empty());
  const auto closed = world.sessions().Close(kAnn, "s");
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->state, SessionRecord::State::kClosed);
  const auto pending = world.memories().Get(kAnn, closed->memory->Hex());
  EXPECT_EQ(pending->state, MemoryRecord::State::kRebuilding);
  EXPECT_EQ(pending->logical_tokens, 5);  // the ids of prompt and reply
  EXPECT_EQ(base::Reason(world.Load(kAnn, *pending).status()), "NOT_READY");
  EXPECT_EQ(world.Found(kAnn, "boats").size(), 1u);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
  EXPECT_EQ(world.sessions().BeginTurn(kAnn, "s", {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RunJobs(world), 1);
  ASSERT_EQ(world.builder.built.size(), 1u);
  EXPECT_EQ(world.builder.built[0].urgency, kv::BuildUrgency::kBackground);
  EXPECT_EQ(world.builder.built[0].date, "2026-12-01");
  EXPECT_EQ(world.builder.built[0].turns.at(0).user_text, "my boat");
  const auto built = world.memories().Get(kAnn, closed->memory->Hex());
  EXPECT_EQ(built->state, MemoryRecord::State::kExact);
  EXPECT_TRUE(world.Load(kAnn, *built).ok());
  EXPECT_EQ(world.tier().GetStats().jobs_pending, 0);
  EXPECT_EQ(world.sessions().Close(kAnn, "s")->memory, closed->memory);  // once
  EXPECT_EQ(RunJobs(world), 0);
}

TEST(Jobs, AnotherModelBuildsFromTheTextOfRepliesAndNotFromTheIdsOfTheFirstOne) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  SayBehindOwnPrompt(world, "t", "my car");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  EXPECT_EQ(RunJobs(world), 1);
  ASSERT_EQ(world.builder.built.size(), 1u);
  EXPECT_FALSE(world.builder.built[0].turns.at(0).assistant_tokens.empty());
  world.builder.model = TestModel(2);
  world.Reopen();
  ASSERT_TRUE(world.sessions().Close(kAnn, "t").ok());
  EXPECT_EQ(RunJobs(world), 1);
  ASSERT_EQ(world.builder.built.size(), 2u);
  EXPECT_EQ(world.builder.built[1].turns.at(0).assistant_text, "reply");
  EXPECT_TRUE(world.builder.built[1].turns.at(0).assistant_tokens.empty());
}

TEST(Jobs, WhatAReplacedStateLeavesBecauseItWasMountedIsSweptWithoutADeletion) {
  World world;
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  world.Say(kAnn, "t", "which boat", "Vega", {World::MountOf(memory)});
  for (int64_t turn = 2; turn <= 3; ++turn) {  // the first replaced part is mounted, the second not
    world.Say(kAnn, "s", "more", "noted");
    KVASIR_ASSERT_OK(world.sessions().SaveState(
        kAnn, "s", turn, {world.Tail(kAnn, "s").Longer(4, turn)}, /*replaces_last=*/true));
  }
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
  const auto segments = [&] {
    world.Close();
    size_t count = 0;
    {
      const auto store = world.OpenStore();
      count = CountKind(*store, world.KeyOf(*store, kAnn), store::Kind::kSegment);
    }
    world.Open();
    return count;
  };
  EXPECT_EQ(segments(), 3u);
  world.clock.Advance(61 * kSecond);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(segments(), 2u);  // the memory's and the mounted one
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Jobs, AJobResumesAfterReopening) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  world.Reopen();
  EXPECT_EQ(world.tier().GetStats().jobs_pending, 1);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.memories().List(kAnn, {})->items.at(0).state, MemoryRecord::State::kExact);
  world.Reopen();
  EXPECT_EQ(RunJobs(world), 0);
}

// The server ended between the reply and the saving of its state.
TEST(Jobs, WhatNoSavedStateHoldsIsACandidateOfTheNextSessionAndCanBeBuiltAtOnce) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "my boat", "noted");
  world.Reopen();
  world.Create(kAnn, "next");
  auto candidates = world.memories().Candidates(kAnn, "next", "which boats");
  KVASIR_ASSERT_OK(candidates.status());
  ASSERT_EQ(candidates->size(), 1u);
  EXPECT_TRUE(candidates->at(0).lexical_hit);
  EXPECT_EQ(candidates->at(0).memory.state, MemoryRecord::State::kRebuilding);
  EXPECT_EQ(candidates->at(0).memory.logical_tokens, 5);
  KVASIR_ASSERT_OK(world.memories().BuildNow(kAnn, candidates->at(0).memory.name).status());
  EXPECT_EQ(world.memories().Candidates(kAnn, "next", "boats")->at(0).memory.state,
            MemoryRecord::State::kExact);
  EXPECT_EQ(RunJobs(world), 1);  // due at once, and finds nothing left to do
  EXPECT_EQ(world.builder.built.size(), 1u);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Jobs, ASessionWhoseTurnRunsIsNoCandidateYet) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "my boat", "noted");
  world.Begin(kAnn, "s", "and my");
  world.Create(kAnn, "next");
  EXPECT_TRUE(world.memories().Candidates(kAnn, "next", "boat")->empty());
}

TEST(Jobs, AnIdleSessionIsLearnedWithoutBeingClosed) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  EXPECT_EQ(RunJobs(world), 0);
  world.clock.Advance(world.options.session_idle_close_s * kSecond);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.Found(kAnn, "boats").size(), 1u);
  EXPECT_EQ(world.sessions().Get(kAnn, "s")->state, SessionRecord::State::kOpen);
  world.Say(kAnn, "s", "and a cat", "reply");
  world.clock.Advance(world.options.session_idle_close_s * kSecond);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.Found(kAnn, "cats").size(), 1u);
  EXPECT_EQ(world.memories().List(kAnn, {})->items.size(), 1u);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Jobs, APromotableSessionNeedsNoBuild) {
  World world;
  world.Create(kAnn, "s");
  world.Learn(kAnn, "s", "my boat", "noted");
  EXPECT_EQ(world.tier().GetStats().jobs_pending, 0);
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  EXPECT_EQ(RunJobs(world), 0);
  EXPECT_TRUE(world.builder.built.empty());
  const auto memory = world.memories().List(kAnn, {})->items.at(0);
  EXPECT_TRUE(world.Load(kAnn, memory).ok());  // closing dropped the checkpoint, not the state
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Jobs, ASaveThatNeverCameIsMadeUpForFromText) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "my boat", "noted");
  world.Reopen();
  world.clock.Advance(world.options.session_idle_close_s * kSecond);
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.Found(kAnn, "boats").size(), 1u);
}

TEST(Jobs, SessionsThatLeaveNoMemoryLeaveNone) {
  World world;
  for (const MemoryMode mode : {MemoryMode::kOff, MemoryMode::kRead, MemoryMode::kIncognito}) {
    const std::string name = "s" + std::to_string(static_cast<int>(mode));
    world.Create(kAnn, name, mode);
    world.Say(kAnn, name, "my boat", "noted");
    ASSERT_TRUE(world.sessions().Close(kAnn, name).ok());
  }
  world.clock.Advance(world.options.session_idle_close_s * kSecond);
  RunJobs(world);
  EXPECT_TRUE(world.memories().List(kAnn, {})->items.empty());
  EXPECT_TRUE(world.builder.built.empty());
  // Incognito turns go with the close.
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s3", 1)->state, TurnRecord::State::kDeleted);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s3", 1)->user_text, "");
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s1", 1)->user_text, "my boat");
}

TEST(Jobs, AnIdleIncognitoSessionForgetsItsTurns) {
  World world;
  world.Create(kAnn, "s", MemoryMode::kIncognito);
  world.Say(kAnn, "s", "my boat", "noted");
  world.clock.Advance(world.options.session_idle_close_s * kSecond);
  RunJobs(world);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "s", 1)->user_text, "");
}

TEST(Jobs, AFailedBuildIsTriedAgainAndGivenUpInTheEnd) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  world.builder.during_build = [](const std::atomic<bool>&) { return base::Unavailable("busy"); };
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.tier().GetStats().jobs_pending, 1);
  EXPECT_EQ(RunJobs(world), 0);  // waits
  for (int i = 0; i < 20; ++i) {
    world.clock.Advance(24 * 3600 * kSecond);
    RunJobs(world);
  }
  EXPECT_EQ(world.tier().GetStats().jobs_pending, 0);
  EXPECT_EQ(world.tier().GetStats().jobs_failed, 1);
  EXPECT_EQ(world.builder.built.size(), 6u);
  EXPECT_EQ(world.memories().List(kAnn, {})->items.at(0).state, MemoryRecord::State::kCorrupt);
}

TEST(Jobs, AFullQueueRefusesToCloseAndNeverATurn) {
  World world([](TierOptions& options) { options.jobs_max = 1; });
  SayBehindOwnPrompt(world, "s", "my boat");
  SayBehindOwnPrompt(world, "t", "my cat");
  EXPECT_EQ(base::Reason(world.sessions().Close(kAnn, "t").status()), "LIMIT_REACHED");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  EXPECT_EQ(RunJobs(world), 1);
  ASSERT_TRUE(world.sessions().Close(kAnn, "t").ok());
}

TEST(Jobs, BuildNowBuildsAPendingMemory) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  const auto closed = world.sessions().Close(kAnn, "s");
  const auto built = world.memories().BuildNow(kAnn, closed->memory->Hex());
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->state, MemoryRecord::State::kExact);
  EXPECT_TRUE(world.Load(kAnn, *built).ok());
  RunJobs(world);
  ASSERT_EQ(world.builder.built.size(), 1u);  // the job found nothing left to do
  EXPECT_EQ(world.builder.built[0].urgency, kv::BuildUrgency::kChat);
  EXPECT_EQ(world.builder.built[0].fairness_key, FairnessKey(kAnn));
  EXPECT_EQ(world.memories().BuildNow(kAnn, std::string(32, '0')).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Jobs, StoppingCancelsTheRunningJobAndKeepsItQueued) {
  World world;
  SayBehindOwnPrompt(world, "s", "my boat");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  std::atomic<bool> building = false;
  world.builder.during_build = [&](const std::atomic<bool>& cancelled) {
    building = true;
    while (!cancelled) std::this_thread::yield();
    return base::OkStatus();
  };
  world.tier().StartJobs();
  while (!building) std::this_thread::yield();
  // A build holds no lock: everything else goes on.
  world.Create(kAnn, "t");
  world.Say(kAnn, "t", "hello", "hello");
  EXPECT_EQ(world.sessions().History(kAnn, "s")->size(), 1u);
  world.tier().StopJobs(600 * kSecond);
  EXPECT_EQ(world.memories().List(kAnn, {})->items.at(0).state, MemoryRecord::State::kRebuilding);
  world.builder.during_build = nullptr;
  EXPECT_EQ(RunJobs(world), 1);
  EXPECT_EQ(world.memories().List(kAnn, {})->items.at(0).state, MemoryRecord::State::kExact);
}

}  // namespace
}  // namespace kvasir::service

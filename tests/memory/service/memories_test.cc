// Memories: usable at once after SaveState, found by inflected words, loaded verified; quarantine.
#include <gtest/gtest.h>

#include <thread>

#include "memory/service/record_access.h"
#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

TEST(Memories, AFactIsUsableRightAfterItsStateIsSaved) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "My boat is called Vega.", "A fine name!");
  world.Create(kAnn, "t");
  const auto candidates = world.memories().Candidates(kAnn, "t", "what are my boats called?");
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  ASSERT_EQ(candidates->size(), 1u);
  EXPECT_TRUE(candidates->at(0).lexical_hit);
  EXPECT_EQ(candidates->at(0).best_turn, 1);
  EXPECT_EQ(candidates->at(0).memory.id, memory.id);
  const auto loaded = world.Load(kAnn, candidates->at(0).memory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->segment->logical_tokens(), 10);
  EXPECT_EQ(loaded->segment->ContentDigest(), TestTail().Next(10, 1)->ContentDigest());
  EXPECT_FALSE(loaded->from_ram);
  EXPECT_TRUE(world.Load(kAnn, memory)->from_ram);
}

TEST(Memories, AMemoryGrowsWithItsSession) {
  World world;
  world.Create(kAnn, "s");
  world.Learn(kAnn, "s", "My boat is called Vega.", "noted");
  const MemoryRecord memory = world.Learn(kAnn, "s", "The cat sleeps on the stove.", "noted");
  EXPECT_EQ(memory.source_turns, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(memory.parts.size(), 2u);
  EXPECT_EQ(memory.title, "My boat is called Vega.");
  const auto loaded = world.Load(kAnn, memory);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->segment->logical_tokens(), 20);
  EXPECT_EQ(world.Found(kAnn, "sleeping cats").size(), 1u);
  const auto turns = world.memories().SourceTurns(kAnn, memory);
  ASSERT_EQ(turns->size(), 2u);
  EXPECT_EQ(turns->at(1).user_text, "The cat sleeps on the stove.");
}

TEST(Memories, WordsFindOnlyTheUsersOwnInOrderOfFit) {
  World world;
  for (const UserRef& user : {kAnn, kBob}) {
    world.Create(user, "boat");
    world.Create(user, "cat");
    world.Learn(user, "boat", "boat of " + user.user + ", painted blue", "noted");
    world.Learn(user, "cat", "cat of " + user.user + ", never in a boat or a car", "noted");
  }
  EXPECT_EQ(world.Found(kAnn, "painting boats"),
            (std::vector<std::string>{"boat of ann, painted blue",
                                      "cat of ann, never in a boat or a car"}));
  EXPECT_TRUE(world.Found(kAnn, "what is the weather").empty());
  EXPECT_TRUE(world.Found(kAnn, "bob").empty());
  EXPECT_EQ(world.memories().Search(kAnn, "boat", 1)->size(), 1u);
  EXPECT_FALSE(world.memories().Search(kAnn, "boat", 0).ok());
  world.Reopen();
  EXPECT_EQ(world.Found(kAnn, "painting boats").size(), 2u);
}

TEST(Memories, CandidatesAreAllButTheSessionsOwnNewestFirst) {
  World world;
  for (const char* name : {"a", "b", "c"}) {
    world.Create(kAnn, name);
    world.Learn(kAnn, name, std::string("session ") + name, "noted");
  }
  const auto candidates = world.memories().Candidates(kAnn, "b", "hi");
  ASSERT_EQ(candidates->size(), 2u);
  EXPECT_EQ(candidates->at(0).memory.title, "session c");
  EXPECT_EQ(candidates->at(1).memory.title, "session a");
  EXPECT_FALSE(candidates->at(0).lexical_hit);
  EXPECT_EQ(world.memories().Candidates(kAnn, "", "hi")->size(), 3u);
}

TEST(Memories, PagesGiveTheExactSet) {
  World world;
  std::set<std::string> all;
  for (int i = 0; i < 9; ++i) {
    const std::string name = "s" + std::to_string(i);
    world.Create(kAnn, name);
    all.insert(world.Learn(kAnn, name, "text", "reply").name);
  }
  std::set<std::string> walked;
  size_t seen = 0;
  ListPage page = PageOf(2);
  do {
    const auto listed = world.memories().List(kAnn, page);
    ASSERT_TRUE(listed.ok()) << listed.status();
    for (const MemoryRecord& memory : listed->items) walked.insert(memory.name), ++seen;
    page.after = listed->next;
  } while (!page.after.empty());
  EXPECT_EQ(walked, all);
  EXPECT_EQ(seen, all.size());
}

TEST(Memories, NamesOfOthersAndMalformedOnesAreNotFound) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "mine", "noted");
  EXPECT_TRUE(world.memories().Get(kAnn, memory.name).ok());
  for (const std::string& name : {std::string(), std::string("x"), memory.name + "0",
                                  std::string(32, 'g'), std::string(32, '0')}) {
    EXPECT_EQ(world.memories().Get(kAnn, name).status().code(), absl::StatusCode::kNotFound);
  }
  EXPECT_EQ(world.memories().Get(kBob, memory.name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.memories().Delete(kBob, memory.name).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(base::Reason(world.Load(kBob, memory).status()), "DELETED");
  EXPECT_TRUE(world.Load(kAnn, memory).ok());
}

TEST(Memories, AMountedStateOutlivesTheGrowthOfItsMemory) {
  World world;
  world.Create(kAnn, "s");
  const TurnRecord turn = world.Say(kAnn, "s", "boat", "noted");
  KVASIR_ASSERT_OK(
      world.sessions().SaveState(kAnn, "s", 1, {world.Tail(kAnn, "s").Next(4, 1)}, false));
  MemoryRecord before = world.memories().List(kAnn, {})->items.at(0);
  world.Create(kAnn, "t");
  world.Say(kAnn, "t", "hello", "hello", {World::MountOf(before)});
  world.Say(kAnn, "s", "more", "noted");
  KVASIR_ASSERT_OK(
      world.sessions().SaveState(kAnn, "s", 2, {world.Tail(kAnn, "s").Longer(4, 2)}, true));
  for (int round = 0; round < 2; ++round) {
    const MountEntry mount = world.sessions().Get(kAnn, "t")->mounts.at(0);
    const auto loaded =
        world.memories().LoadMount(kAnn, mount, world.clock.MonotonicMicros() + kSecond);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->segment->logical_tokens(), 4);
    EXPECT_EQ(
        world.Load(kAnn, world.memories().List(kAnn, {})->items.at(0))->segment->logical_tokens(),
        8);
    EXPECT_TRUE(world.Findings(Repair::kNo).empty());
    world.Reopen();
  }
  while (world.tier().RunOneJob()) {
  }
  EXPECT_TRUE(world.Load(kAnn, before).ok());
}

TEST(Memories, ADamagedStateIsAMissThatQueuesItsRebuild) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  world.Close();
  {
    const auto store = world.OpenStore();
    KVASIR_ASSERT_OK(store->Commit(
        store::Batch().DropSegment(world.KeyOf(*store, kAnn), memory.parts.at(0).id)));
  }
  world.Open();
  EXPECT_EQ(base::Reason(world.Load(kAnn, memory).status()), "STATE_CORRUPT");
  const auto corrupt = world.memories().Get(kAnn, memory.name);
  EXPECT_EQ(corrupt->state, MemoryRecord::State::kCorrupt);
  EXPECT_EQ(base::Reason(world.Load(kAnn, *corrupt).status()), "STATE_CORRUPT");
  EXPECT_EQ(world.Found(kAnn, "boats").size(), 1u);
  while (world.tier().RunOneJob()) {
  }
  const auto rebuilt = world.memories().Get(kAnn, memory.name);
  EXPECT_EQ(rebuilt->state, MemoryRecord::State::kExact);
  EXPECT_TRUE(world.Load(kAnn, *rebuilt).ok());
}

TEST(Memories, ADeadlineThatHasPassedIsALoadTimeout) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  EXPECT_EQ(
      base::Reason(world.memories().Load(kAnn, memory, world.clock.MonotonicMicros()).status()),
      "LOAD_TIMEOUT");
  EXPECT_TRUE(world.Load(kAnn, memory).ok());
}

TEST(Memories, ManyLoadsAtOnceAllGetTheState) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  const base::Digest expected = TestTail().Next(10, 1)->ContentDigest();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto loaded = world.Load(kAnn, memory);
      good += loaded.ok() && loaded->segment->ContentDigest() == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
  const TierStats stats = world.tier().GetStats();
  EXPECT_EQ(stats.loads_from_ram + stats.loads_from_disk, 8u);
  EXPECT_GT(stats.ram_cache_bytes, 0u);
}

TEST(Memories, UsesAreCountedAndWrittenBehind) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  world.memories().RecordUse(kAnn, memory.id);
  world.memories().RecordUse(kAnn, memory.id);
  EXPECT_EQ(world.memories().Get(kAnn, memory.name)->use_count, 2);
  world.Learn(kAnn, "s", "more", "noted");  // a change of the memory does not lose them
  world.Reopen();
  EXPECT_EQ(world.memories().Get(kAnn, memory.name)->use_count, 2);
}

}  // namespace
}  // namespace kvasir::service

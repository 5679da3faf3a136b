// Deletion: after the acknowledgement nothing finds it, also after a restart; what belongs to
// others is untouched; deletions in the middle of everything else.
#include <gtest/gtest.h>

#include <thread>

#include "memory/service/records_codec.h"
#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

constexpr char kCanary[] = "zanzibar";  // its stem is itself

// Notes what a server would have to drop.
class Listener final : public DeletionListener {
 public:
  void OnMemoryDeleted(const UserRef&, const store::RecordId& memory) override {
    memories.insert(memory);
  }
  void OnSessionInvalidated(const UserRef&, const std::string& session, bool deleted) override {
    (deleted ? sessions : voided).insert(session);
  }
  void OnUserErased(const UserRef& user) override { users.insert(user); }
  std::set<store::RecordId> memories;
  std::set<std::string> sessions, voided;
  std::set<UserRef> users;
};

// Nothing of the canary is found by any way of asking.
void ExpectGone(World& world, const UserRef& user, const MemoryRecord& memory) {
  EXPECT_EQ(world.memories().Get(user, memory.name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(world.Found(user, kCanary).empty());
  const auto listed = world.memories().List(user, {});
  ASSERT_TRUE(listed.ok()) << listed.status();
  for (const MemoryRecord& other : listed->items) EXPECT_NE(other.id, memory.id);
  const auto candidates = world.memories().Candidates(user, "", kCanary);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  for (const Candidate& candidate : *candidates) EXPECT_NE(candidate.memory.id, memory.id);
  EXPECT_EQ(base::Reason(world.Load(user, memory).status()), "DELETED");
  EXPECT_EQ(world.memories().SourceTurns(user, memory).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(world.memories().BuildNow(user, memory.name).status().code(),
            absl::StatusCode::kNotFound);
}

// No record of the user holds the canary, and no segment of the memory is left.
void ExpectNoTrace(World& world, const UserRef& user, const MemoryRecord& memory) {
  world.Close();
  {
    const auto store = world.OpenStore();
    const auto records = AllRecords(*store, world.KeyOf(*store, user));
    EXPECT_EQ(WithMarker(records, kCanary), std::vector<std::string>());
    for (const StatePart& part : memory.parts) {
      EXPECT_FALSE(records.contains("segment " + base::ToHex(part.id)));
    }
  }
  world.Open();
}

TEST(DeleteMemory, LeavesNothingFindableAndKeepsTheSessionUsable) {
  World world;
  Listener listener;
  world.tier().SetDeletionListener(&listener);
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "zanzibar is far");
  const MemoryRecord kept = world.Learn(kAnn, "t", "my cat is red", "noted");
  ASSERT_TRUE(world.Load(kAnn, memory).ok());  // in RAM
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memory.name));
  EXPECT_EQ(listener.memories, (std::set<store::RecordId>{memory.id}));
  EXPECT_EQ(listener.voided, (std::set<std::string>{"s"}));
  EXPECT_TRUE(listener.sessions.empty());
  ExpectGone(world, kAnn, memory);
  EXPECT_EQ(world.memories().Delete(kAnn, memory.name).code(), absl::StatusCode::kNotFound);
  const auto turn = world.sessions().GetTurn(kAnn, "s", 1);
  EXPECT_EQ(turn->state, TurnRecord::State::kDeleted);
  EXPECT_EQ(turn->user_text + turn->reply_text, "");
  EXPECT_TRUE(turn->prompt_ids.empty() && turn->reply_ids.empty());
  EXPECT_TRUE(world.sessions().LoadState(kAnn, "s")->empty());
  EXPECT_EQ(world.tier().GetUser(kAnn)->epoch, 1u);
  ExpectNoTrace(world, kAnn, memory);
  ExpectGone(world, kAnn, memory);
  // The other memory and the session go on.
  EXPECT_TRUE(world.Load(kAnn, kept).ok());
  EXPECT_EQ(world.Found(kAnn, "cats").size(), 1u);
  EXPECT_EQ(world.Say(kAnn, "s", "something new", "noted").number, 2);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(DeleteMemory, ScoresAreThoseOfAnIndexThatNeverKnewIt) {
  const auto score = [](bool with_deleted) {
    World world;
    world.Create(kAnn, "a");
    world.Learn(kAnn, "a", "my boat is red", "noted");
    world.Create(kAnn, "b");
    world.Learn(kAnn, "b", "my cat sleeps", "noted");
    if (with_deleted) {
      world.Create(kAnn, "c");
      const MemoryRecord memory = world.Learn(kAnn, "c", "the boat in zanzibar", "noted");
      EXPECT_TRUE(world.memories().Delete(kAnn, memory.name).ok());
    }
    const auto found = world.memories().Search(kAnn, "boats", 10);
    EXPECT_TRUE(found.ok() && found->size() == 1) << found.status();
    return found.ok() && !found->empty() ? found->at(0).lexical_score : 0;
  };
  EXPECT_EQ(score(true), score(false));
}

TEST(DeleteMemory, TheSessionIsLearnedAnewFromWhatCameAfter) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memory.name));
  world.Say(kAnn, "s", "my cat is red", "noted");
  ASSERT_TRUE(world.sessions().Close(kAnn, "s").ok());
  while (world.tier().RunOneJob()) {
  }
  ASSERT_EQ(world.builder.built.size(), 1u);
  ASSERT_EQ(world.builder.built[0].turns.size(), 1u);
  EXPECT_EQ(world.builder.built[0].turns[0].user_text, "my cat is red");
  EXPECT_EQ(world.Found(kAnn, "cats").size(), 1u);
  ExpectGone(world, kAnn, memory);
}

TEST(DeleteMemory, VoidsEverySessionThatHadItMounted) {
  World world;
  Listener listener;
  world.tier().SetDeletionListener(&listener);
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  for (const char* name : {"t", "u"}) {
    world.Create(kAnn, name);
    world.Say(kAnn, name, "where do I live?", "there", {World::MountOf(memory)});
    KVASIR_ASSERT_OK(world.Save(kAnn, name, 1));
    EXPECT_EQ(world.sessions().LoadState(kAnn, name)->size(), 1u);
  }
  const TurnRecord running = world.Begin(kAnn, "u", "and now?");
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memory.name));
  EXPECT_EQ(listener.voided, (std::set<std::string>{"s", "t", "u"}));
  for (const char* name : {"t", "u"}) {
    const auto session = world.sessions().Get(kAnn, name);
    EXPECT_TRUE(session->mounts.at(0).deleted);
    EXPECT_TRUE(session->mounts.at(0).parts.empty());
    EXPECT_TRUE(world.sessions().LoadState(kAnn, name)->empty());
    EXPECT_EQ(world.sessions().GetTurn(kAnn, name, 1)->user_text, "where do I live?");
  }
  // The running turn is over, and a save of the state it came from is refused.
  EXPECT_EQ(world.Finish(kAnn, running, "in zanzibar").code(), absl::StatusCode::kAborted);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "u", 2)->state, TurnRecord::State::kFailed);
  EXPECT_EQ(world.sessions().GetTurn(kAnn, "u", 2)->user_text, "and now?");
  EXPECT_EQ(world.Say(kAnn, "u", "and then?", "somewhere").number, 3);  // not busy
  TestTail whole(world.sessions().Get(kAnn, "t")->offset);
  EXPECT_EQ(world.sessions().SaveState(kAnn, "t", 1, {whole.Next(9, 1)}, false).code(),
            absl::StatusCode::kAborted);
  world.Say(kAnn, "t", "hello again", "hello");
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "t", 2, {whole.Longer(1, 2)}, false));
  ExpectNoTrace(world, kAnn, memory);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(DeleteMemory, IsRefusedAsAMountOfATurnThatBeginsLater) {
  World world;
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memory.name));
  TurnStart start;
  start.offset = kBaseTokens;
  start.date = "2026-12-01";
  start.mounts_added.push_back(World::MountOf(memory));
  EXPECT_EQ(base::Reason(world.sessions().BeginTurn(kAnn, "t", start).status()), "DELETED");
}

TEST(DeleteMemory, WhileItIsBuiltNothingOfItIsWritten) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "I live in zanzibar", "noted");
  const auto closed = world.sessions().Close(kAnn, "s");
  const auto memory = world.memories().Get(kAnn, closed->memory->Hex());
  ASSERT_TRUE(memory.ok());
  world.builder.during_build = [&](const std::atomic<bool>&) {
    return world.memories().Delete(kAnn, memory->name);
  };
  EXPECT_TRUE(world.tier().RunOneJob());
  world.builder.during_build = nullptr;
  while (world.tier().RunOneJob()) {
  }
  ExpectGone(world, kAnn, *memory);
  ExpectNoTrace(world, kAnn, *memory);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
  world.Close();
  const auto store = world.OpenStore();
  EXPECT_EQ(CountKind(*store, world.KeyOf(*store, kAnn), store::Kind::kJob), 0u);
  EXPECT_TRUE(store->ListSegments(world.KeyOf(*store, kAnn), std::nullopt, 10)->segments.empty());
}

TEST(DeleteMemory, WhileManyLoadItNoLoadThatBeganLaterGivesIt) {
  World world;
  for (int round = 0; round < 10; ++round) {
    const std::string name = "s" + std::to_string(round);
    world.Create(kAnn, name);
    const MemoryRecord memory = world.Learn(kAnn, name, "I live in zanzibar", "noted");
    std::atomic<bool> deleted = false;
    std::atomic<int> loaded_after = 0, loads = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 30; ++n) {
          const bool later = deleted;
          const bool ok = world.Load(kAnn, memory).ok();
          loaded_after += later && ok;
          ++loads;
        }
      });
    }
    while (loads == 0) std::this_thread::yield();
    const base::Status status = world.memories().Delete(kAnn, memory.name);
    deleted = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(loaded_after, 0);
    EXPECT_EQ(world.tier().GetStats().ram_cache_bytes, 0u);  // no load put it back
    ExpectGone(world, kAnn, memory);
  }
}

TEST(DeleteSession, TakesTurnsCheckpointAndMemory) {
  World world;
  Listener listener;
  world.tier().SetDeletionListener(&listener);
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  const TurnRecord running = world.Begin(kAnn, "s", "zanzibar again");
  KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, "s"));
  EXPECT_EQ(listener.sessions, (std::set<std::string>{"s"}));
  EXPECT_EQ(world.Finish(kAnn, running, "reply").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.sessions().Get(kAnn, "s").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.sessions().History(kAnn, "s").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.sessions().LoadState(kAnn, "s").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(world.sessions().Delete(kAnn, "s").code(), absl::StatusCode::kNotFound);
  ExpectGone(world, kAnn, memory);
  ExpectNoTrace(world, kAnn, memory);
  while (world.tier().RunOneJob()) {
  }
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
  EXPECT_TRUE(world.sessions().List(kAnn, {})->items.empty());
  EXPECT_EQ(world.Create(kAnn, "s").next_turn, 1);  // the name is free, the session new
}

TEST(DeleteSession, ThatHadAMountLeavesTheMountedMemoryWhole) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  for (const char* name : {"t", "u"}) {
    world.Create(kAnn, name);
    world.Say(kAnn, name, "what boat?", "that", {World::MountOf(memory)});
    KVASIR_ASSERT_OK(world.Save(kAnn, name, 1));
  }
  KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, "t"));
  while (world.tier().RunOneJob()) {
  }
  EXPECT_TRUE(world.Load(kAnn, memory).ok());
  EXPECT_EQ(world.sessions().LoadState(kAnn, "s")->size(), 1u);
  EXPECT_EQ(world.sessions().LoadState(kAnn, "u")->size(), 1u);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(Deletion, OfOneUserLeavesAnotherByteIdentical) {
  World world;
  for (const UserRef& user : {kAnn, kBob}) {
    world.Create(user, "s");
    world.Create(user, "t");
    world.Learn(user, "s", "I live in zanzibar", "noted");
    world.Learn(user, "t", "my cat is red", "noted");
  }
  world.Close();
  const auto before = [&] {
    const auto store = world.OpenStore();
    return AllRecords(*store, world.KeyOf(*store, kBob));
  }();
  world.Open();
  const auto memories = world.memories().List(kAnn, {});
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memories->items.at(0).name));
  KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, "s"));
  ASSERT_TRUE(world.tier().EraseUser(kAnn).ok());
  while (world.tier().RunOneJob()) {
  }
  world.Close();
  const auto store = world.OpenStore();
  EXPECT_EQ(AllRecords(*store, world.KeyOf(*store, kBob)), before);
}

TEST(EraseUser, LeavesNothingAndARecordThatOutlivesTheUser) {
  World world;
  Listener listener;
  world.tier().SetDeletionListener(&listener);
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  ASSERT_TRUE(world.Load(kAnn, memory).ok());
  const TurnRecord running = world.Begin(kAnn, "s", "zanzibar again");
  const auto erasure = world.tier().EraseUser(kAnn);
  ASSERT_TRUE(erasure.ok()) << erasure.status();
  EXPECT_EQ(listener.users, (std::set<UserRef>{kAnn}));
  EXPECT_EQ(erasure->state, ErasureRecord::State::kDone);
  EXPECT_EQ(erasure->sessions, 1);
  EXPECT_EQ(erasure->turns, 2);
  EXPECT_EQ(erasure->memories, 1);
  EXPECT_EQ(erasure->segments, 1);
  EXPECT_EQ(erasure->residual_records, 0u);
  EXPECT_EQ(world.tier().GetStats().ram_cache_bytes, 0u);
  EXPECT_FALSE(world.Finish(kAnn, running, "reply").ok());
  EXPECT_EQ(world.tier().GetUser(kAnn).status().code(), absl::StatusCode::kNotFound);
  ExpectGone(world, kAnn, memory);
  world.Close();
  {
    const auto store = world.OpenStore();
    EXPECT_TRUE(AllRecords(*store, world.KeyOf(*store, kAnn)).empty());
    const auto system = AllRecords(*store, store::kSystemUser);
    EXPECT_EQ(WithMarker(system, "ann"), std::vector<std::string>());
  }
  world.Open();
  const auto kept = world.tier().GetErasure("default", erasure->id.Hex());
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->state, ErasureRecord::State::kDone);
  EXPECT_EQ(kept->user, store::UserKey{});
  EXPECT_FALSE(world.tier().GetErasure("other", erasure->id.Hex()).ok());
  EXPECT_FALSE(world.tier().GetErasure("default", "x").ok());
  // Idempotent, and the user may come again.
  const auto again = world.tier().EraseUser(kAnn);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->turns, 0);
  world.Create(kAnn, "s");
  EXPECT_TRUE(world.sessions().History(kAnn, "s")->empty());
}

TEST(EraseUser, GoesOnByItselfAfterARestart) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "I live in zanzibar", "noted");
  world.Close();
  store::RecordId id{{9}};
  {
    const auto store = world.OpenStore();
    ErasureRecord begun;
    begun.id = id;
    begun.tenant = "default";
    begun.user = world.KeyOf(*store, kAnn);
    KVASIR_ASSERT_OK(store->Commit(
        store::Batch().Put({store::kSystemUser, store::Kind::kOperation, id, 0}, Encode(begun))));
  }
  world.Open();
  EXPECT_EQ(world.tier().GetErasure("default", id.Hex())->state, ErasureRecord::State::kDone);
  EXPECT_TRUE(world.sessions().List(kAnn, {})->items.empty());
  ExpectGone(world, kAnn, memory);
}

TEST(EraseUser, UnderLoadNothingComesBack) {
  World world;
  world.tier().StartJobs();
  for (int round = 0; round < 5; ++round) {
    world.Create(kAnn, "s");
    world.Learn(kAnn, "s", "I live in zanzibar", "noted");
    std::atomic<bool> stop = false;
    std::atomic<int> steps = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!stop) {
          TurnStart start;
          start.turn.user_text = "zanzibar";
          auto turn = world.sessions().BeginTurn(kAnn, "s", start);
          if (turn.ok()) world.sessions().FinishTurn(kAnn, *turn).IgnoreError();
          world.memories().Search(kAnn, kCanary, 3).IgnoreError();
          ++steps;
        }
      });
    }
    while (steps < 10) std::this_thread::yield();
    const auto erasure = world.tier().EraseUser(kAnn);
    EXPECT_TRUE(world.Found(kAnn, kCanary).empty());
    stop = true;
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(erasure.ok()) << erasure.status();
    EXPECT_TRUE(world.sessions().List(kAnn, {})->items.empty());
  }
  world.tier().StopJobs(600 * kSecond);
  world.Close();
  const auto store = world.OpenStore();
  EXPECT_TRUE(AllRecords(*store, world.KeyOf(*store, kAnn)).empty());
}

}  // namespace
}  // namespace kvasir::service

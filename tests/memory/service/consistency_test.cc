// CheckConsistency: every kind of contradiction is found, mended, and gone afterwards. Method: a
// world with something of everything, one kind of damage written into its store at a time.
#include <gtest/gtest.h>

#include <functional>

#include "memory/index/term_counts.h"
#include "memory/service/record_access.h"
#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

struct Ids {
  store::UserKey user;
  store::RecordId session;  // of the promotable session, with a memory and a checkpoint
  MemoryRecord memory;
};

using Damage = std::function<void(store::Store&, const Ids&, store::Batch&)>;

struct DamageCase {
  std::string name;
  std::vector<std::string> kinds;  // sorted
  Damage damage;
};

SessionRecord ReadSession(store::Store& store, const Ids& ids) {
  return Read<SessionRecord>(store, SessionKey(ids.user, ids.session)).value_or(SessionRecord());
}

std::vector<DamageCase> Cases() {
  const store::RecordId stranger{{0xee}};
  return {
      {"nothing", {}, [](store::Store&, const Ids&, store::Batch&) {}},
      {"the segment of memory and checkpoint is gone",
       {"MISSING_PART", "MISSING_PART"},
       [](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.DropSegment(ids.user, ids.memory.parts.at(0).id);
       }},
      {"a memory names another digest",
       {"MISSING_PART"},
       [](store::Store&, const Ids& ids, store::Batch& batch) {
         MemoryRecord memory = ids.memory;
         memory.parts.at(0).digest.bytes[0] ^= 1;
         batch.Put(MemoryKey(ids.user, memory.id), Encode(memory));
       }},
      {"no record names a segment",
       {"ORPHAN_CHUNK"},
       [](store::Store&, const Ids& ids, store::Batch& batch) {
         MemoryRecord memory = ids.memory;
         memory.parts.pop_back();
         batch.Put(MemoryKey(ids.user, memory.id), Encode(memory));
         batch.Delete(CheckpointKey(ids.user, ids.session, 1));
       }},
      {"an index row of no memory",
       {"INDEX_WITHOUT_MEMORY"},
       [=](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.Put(PostingsKey(ids.user, stranger, 1),
                   kvasir::index::EncodeTermCounts({{"boat", 1}}));
       }},
      {"an index row of no turn",
       {"INDEX_WITHOUT_MEMORY"},
       [](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.Put(PostingsKey(ids.user, ids.memory.id, 77),
                   kvasir::index::EncodeTermCounts({{"x", 1}}));
       }},
      {"a memory without its index rows",
       {"MEMORY_WITHOUT_INDEX"},
       [](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.Delete(PostingsKey(ids.user, ids.memory.id, 1));
         batch.Delete(PostingsKey(ids.user, ids.memory.id, 0));
       }},
      {"a turn is missing and never was learned",
       {"TURN_GAP"},
       [](store::Store& store, const Ids& ids, store::Batch& batch) {
         SessionRecord session = ReadSession(store, ids);
         session.next_turn = 4;
         batch.Put(SessionKey(ids.user, ids.session), Encode(session));
       }},
      {"a turn is past the next one",
       {"TURN_GAP"},
       [](store::Store& store, const Ids& ids, store::Batch& batch) {
         SessionRecord session = ReadSession(store, ids);
         session.next_turn = 2;
         batch.Put(SessionKey(ids.user, ids.session), Encode(session));
       }},
      {"a turn runs that nobody runs",
       {"STALE_RUNNING"},
       [](store::Store& store, const Ids& ids, store::Batch& batch) {
         SessionRecord session = ReadSession(store, ids);
         TurnRecord turn;
         turn.session = ids.session;
         turn.number = session.next_turn++;
         batch.Put(TurnKey(ids.user, ids.session, turn.number), Encode(turn));
         batch.Put(SessionKey(ids.user, ids.session), Encode(session));
       }},
      {"a job of no session",
       {"JOB_WITHOUT_SESSION"},
       [=](store::Store&, const Ids& ids, store::Batch& batch) {
         JobRecord job;
         job.id = stranger;
         job.user = kAnn;
         job.due_us = INT64_MAX;
         batch.Put(JobKey(ids.user, stranger), Encode(job));
       }},
      {"a turn of no session",
       {"TURN_WITHOUT_SESSION"},
       [=](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.Put(TurnKey(ids.user, stranger, 1), Encode(TurnRecord()));
       }},
      {"a checkpoint of no session",
       {"CHECKPOINT_WITHOUT_SESSION"},
       [=](store::Store&, const Ids& ids, store::Batch& batch) {
         batch.Put(CheckpointKey(ids.user, stranger, 0),
                   Encode(CheckpointRow{.part = ids.memory.parts.at(0), .turn = 1}));
       }},
      {"a memory of no session",
       {"INDEX_WITHOUT_MEMORY", "MEMORY_WITHOUT_SESSION"},
       [=](store::Store&, const Ids& ids, store::Batch& batch) {
         MemoryRecord memory = ids.memory;
         memory.id = memory.session = stranger;
         batch.Put(MemoryKey(ids.user, stranger), Encode(memory));
         batch.Put(PostingsKey(ids.user, stranger, 1),
                   kvasir::index::EncodeTermCounts({{"boat", 1}}));
       }},
  };
}

TEST(CheckConsistency, FindsAndMendsEveryKindOfDamage) {
  for (const DamageCase& c : Cases()) {
    SCOPED_TRACE(c.name);
    World world;
    world.Create({.user = "bob"}, "other");
    world.Learn({.user = "bob"}, "other", "bob's boat", "noted");
    Ids ids;
    ids.session = world.Create(kAnn, "s").id;
    world.Learn(kAnn, "s", "my boat is called Vega", "noted");
    ids.memory = world.Learn(kAnn, "s", "my cat is red", "noted");
    world.Close();
    {
      const auto store = world.OpenStore();
      ids.user = world.KeyOf(*store, kAnn);
      store::Batch batch;
      c.damage(*store, ids, batch);
      if (!batch.empty()) KVASIR_ASSERT_OK(store->Commit(batch));
    }
    world.Open();
    EXPECT_EQ(world.Findings(Repair::kNo), c.kinds);
    EXPECT_EQ(world.Findings(Repair::kNo), c.kinds);  // looking changes nothing
    EXPECT_EQ(world.Findings(Repair::kYes), c.kinds);
    EXPECT_TRUE(world.Findings(Repair::kNo).empty());
    while (world.tier().RunOneJob()) {
    }
    world.Reopen();
    EXPECT_TRUE(world.Findings(Repair::kNo).empty());
    // Everything works on what was mended.
    EXPECT_EQ(world.Found(kAnn, "cats").size(), 1u);
    EXPECT_TRUE(world.Load(kAnn, *world.memories().Get(kAnn, ids.memory.name)).ok());
    EXPECT_TRUE(world.sessions().LoadState(kAnn, "s").ok());
    world.Say(kAnn, "s", "go on", "gladly");
  }
}

TEST(CheckConsistency, SaysHowManyRecordsItCompared) {
  World world;
  EXPECT_EQ(world.tier().CheckConsistency(Repair::kNo)->records, 0);
  const UserRef bob{.user = "bob"};
  for (const UserRef& user : {kAnn, bob}) {
    world.Create(user, "s");
    world.Learn(user, "s", "my boat is called Vega", "noted");
  }
  world.Say(bob, "s", "a turn whose state is not saved", "and its job");
  const int64_t records = world.tier().CheckConsistency(Repair::kNo)->records;
  world.Close();
  const auto store = world.OpenStore();
  size_t stored = 0;
  for (const UserRef& user : {kAnn, bob}) {
    stored += AllRecords(*store, world.KeyOf(*store, user)).size();
  }
  EXPECT_EQ(records, static_cast<int64_t>(stored));
}

TEST(CheckConsistency, ARunningTurnIsNoFinding) {
  World world;
  world.Create(kAnn, "s");
  const TurnRecord turn = world.Begin(kAnn, "s", "text");
  EXPECT_TRUE(world.Findings(Repair::kYes).empty());
  KVASIR_ASSERT_OK(world.Finish(kAnn, turn, "reply"));
}

}  // namespace
}  // namespace kvasir::service

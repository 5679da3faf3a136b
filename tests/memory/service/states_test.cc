// SaveState and LoadState: what was saved comes back byte for byte; damage shortens it and never
// fails; which sessions become memories.
#include <gtest/gtest.h>

#include "memory/service/record_access.h"
#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

std::vector<base::Digest> Digests(const std::vector<SegmentPtr>& parts) {
  std::vector<base::Digest> digests;
  for (const SegmentPtr& part : parts) digests.push_back(part->ContentDigest());
  return digests;
}

TEST(States, WhatWasSavedIsLoadedAlsoAfterReopening) {
  World world;
  world.Create(kAnn, "s");
  TestTail tail;
  std::vector<SegmentPtr> saved;
  for (int64_t turn = 1; turn <= 3; ++turn) {
    world.Say(kAnn, "s", "text", "reply");
    const std::vector<SegmentPtr> parts = {tail.Next(5, turn), tail.Next(7, turn)};
    KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", turn, parts, false));
    saved.insert(saved.end(), parts.begin(), parts.end());
  }
  for (int round = 0; round < 2; ++round) {
    const auto loaded = world.sessions().LoadState(kAnn, "s");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(Digests(*loaded), Digests(saved));
    world.Reopen();
  }
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(States, TheLastPartCanBeReplacedByALongerOne) {
  World world;
  world.Create(kAnn, "s");
  TestTail tail;
  world.Say(kAnn, "s", "one", "1");
  const SegmentPtr first = tail.Next(5, 1);
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 1, {first, tail.Next(5, 1)}, false));
  world.Say(kAnn, "s", "two", "2");
  const SegmentPtr longer = tail.Longer(6, 2);
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 2, {longer}, true));
  EXPECT_EQ(Digests(*world.sessions().LoadState(kAnn, "s")), Digests({first, longer}));
  const auto memory = world.memories().Get(kAnn, world.sessions().Get(kAnn, "s")->memory->Hex());
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->logical_tokens, 16);
  EXPECT_TRUE(world.Load(kAnn, *memory).ok());
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());  // the replaced part is no orphan
  world.Close();
  const auto store = world.OpenStore();
  EXPECT_EQ(store->ListSegments(world.KeyOf(*store, kAnn), std::nullopt, 100)->segments.size(), 2u);
}

TEST(States, PartsThatDoNotFitAreRefusedAndNothingIsWritten) {
  World world;
  world.Create(kAnn, "s");
  world.Say(kAnn, "s", "one", "1");
  TestTail tail;
  const SegmentPtr a = tail.Next(5, 1), b = tail.Next(5, 1), c = tail.Next(5, 1);
  const auto save = [&](std::vector<SegmentPtr> parts, bool replaces) {
    return world.sessions().SaveState(kAnn, "s", 1, parts, replaces).code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(save({}, false), kInvalid);
  EXPECT_EQ(save({b}, false), kInvalid);     // does not begin at the offset
  EXPECT_EQ(save({a, c}, false), kInvalid);  // a gap
  EXPECT_EQ(save({a}, true), kInvalid);      // nothing to replace
  EXPECT_EQ(save({TestTail(kBaseTokens, TestModel(2)).Next(5, 1)}, false), kInvalid);
  EXPECT_TRUE(world.sessions().LoadState(kAnn, "s")->empty());
  EXPECT_EQ(world.sessions().SaveState(kAnn, "gone", 1, {a}, false).code(),
            absl::StatusCode::kAborted);
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 1, {a, b}, false));
  EXPECT_EQ(save({c}, true), kInvalid);  // continues, replaces nothing
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 1, {c}, false));
}

TEST(States, ADamagedPartShortensWhatIsLoadedAndIsReplacedByTheNextSave) {
  World world;
  const SessionRecord session = world.Create(kAnn, "s");
  world.Say(kAnn, "s", "one", "1");
  TestTail tail;
  const SegmentPtr a = tail.Next(5, 1), b = tail.Next(5, 1), c = tail.Next(5, 1);
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 1, {a, b, c}, false));
  world.Close();
  {
    const auto store = world.OpenStore();
    const store::UserKey key = world.KeyOf(*store, kAnn);
    const auto rows = ReadCheckpoint(*store, key, session.id);
    KVASIR_ASSERT_OK(store->Commit(store::Batch().DropSegment(key, rows->at(1).part.id)));
  }
  world.Open();
  const auto loaded = world.sessions().LoadState(kAnn, "s");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Digests(*loaded), Digests({a}));
  world.Say(kAnn, "s", "two", "2");
  KVASIR_ASSERT_OK(world.sessions().SaveState(kAnn, "s", 2, {b, c, tail.Next(5, 2)}, false));
  EXPECT_EQ(world.sessions().LoadState(kAnn, "s")->size(), 4u);
  EXPECT_TRUE(world.Findings(Repair::kNo).empty());
}

TEST(States, AStateOfAnotherModelIsNotLoaded) {
  World world;
  world.Create(kAnn, "s");
  const MemoryRecord memory = world.Learn(kAnn, "s", "my boat", "noted");
  world.builder.model = TestModel(2);
  world.Reopen();
  EXPECT_TRUE(world.sessions().LoadState(kAnn, "s")->empty());
  EXPECT_EQ(base::Reason(world.Load(kAnn, memory).status()), "MODEL_MISMATCH");
  const TierStats stats = world.tier().GetStats();
  EXPECT_EQ(stats.misses, (std::vector<std::pair<std::string, uint64_t>>{{"MODEL_MISMATCH", 2}}));
}

TEST(States, WhichSessionsBecomeMemories) {
  World world;
  world.Create(kAnn, "plain");
  const MemoryRecord memory = world.Learn(kAnn, "plain", "my boat is called Vega", "noted");
  EXPECT_EQ(memory.state, MemoryRecord::State::kExact);
  EXPECT_EQ(memory.title, "my boat is called Vega");
  EXPECT_EQ(memory.source_turns, std::vector<int64_t>{1});
  EXPECT_EQ(memory.logical_tokens, 10);

  struct Case {
    const char* name;
    MemoryMode mode;
    const char* system_prompt;
    bool mounts;
    int64_t more_offset;
    size_t parts;  // that LoadState gives
  };
  const Case cases[] = {{"off", MemoryMode::kOff, "", false, 0, 1},
                        {"read", MemoryMode::kRead, "", false, 0, 1},
                        {"incognito", MemoryMode::kIncognito, "", false, 0, 0},
                        {"own prompt", MemoryMode::kReadWrite, "be brief", false, 0, 1},
                        {"mounts", MemoryMode::kReadWrite, "", true, 0, 1},
                        {"slack", MemoryMode::kReadWrite, "", false, 100, 1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    SessionRecord wanted;
    wanted.name = c.name;
    wanted.mode = c.mode;
    wanted.system_prompt = c.system_prompt;
    ASSERT_TRUE(world.sessions().Create(kAnn, wanted).ok());
    TurnStart start{.turn = {},
                    .offset = kBaseTokens + c.more_offset,
                    .date = "2026-12-01",
                    .mounts_added = {}};
    start.turn.mode = c.mode;
    if (c.mounts) start.mounts_added.push_back(World::MountOf(memory));
    const auto turn = world.sessions().BeginTurn(kAnn, c.name, start);
    ASSERT_TRUE(turn.ok()) << turn.status();
    KVASIR_ASSERT_OK(world.Finish(kAnn, *turn, "reply"));
    KVASIR_ASSERT_OK(world.Save(kAnn, c.name, 1));
    EXPECT_FALSE(world.sessions().Get(kAnn, c.name)->memory.has_value());
    EXPECT_EQ(world.sessions().LoadState(kAnn, c.name)->size(), c.parts);
  }
  EXPECT_EQ(world.memories().List(kAnn, {})->items.size(), 1u);
}

TEST(States, ATurnOfAnotherModeTaintsTheSession) {
  World world;
  world.Create(kAnn, "s");
  world.Learn(kAnn, "s", "one", "1");
  TurnStart start;
  start.turn.mode = MemoryMode::kOff;
  const auto turn = world.sessions().BeginTurn(kAnn, "s", start);
  KVASIR_ASSERT_OK(world.Finish(kAnn, *turn, "reply"));
  KVASIR_ASSERT_OK(world.Save(kAnn, "s", 2));
  const auto session = world.sessions().Get(kAnn, "s");
  EXPECT_TRUE(session->tainted);
  // The memory stays what it was before.
  const auto memory = world.memories().Get(kAnn, session->memory->Hex());
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->source_turns, std::vector<int64_t>{1});
  EXPECT_EQ(memory->logical_tokens, 10);
}

TEST(Limits, BytesOfStatesAndMemoriesPerUserAreBounded) {
  World world([](TierOptions& options) { options.memories_per_user_max = 1; });
  world.Create(kAnn, "s");
  world.Create(kAnn, "t");
  world.Learn(kAnn, "s", "one", "1");
  world.Say(kAnn, "t", "two", "2");
  EXPECT_EQ(base::Reason(world.Save(kAnn, "t", 1)), "MEMORY_QUOTA_EXCEEDED");
  EXPECT_TRUE(world.sessions().LoadState(kAnn, "t")->empty());

  World small([](TierOptions& options) { options.state_bytes_per_user_max = 3000; });
  small.Create(kAnn, "s");
  int saved = 0;
  base::Status status;
  for (int64_t turn = 1; turn <= 20 && status.ok(); ++turn) {
    small.Say(kAnn, "s", "text", "reply");
    status = small.Save(kAnn, "s", turn);
    saved += status.ok();
  }
  EXPECT_EQ(base::Reason(status), "MEMORY_QUOTA_EXCEEDED");
  EXPECT_GT(saved, 0);
  EXPECT_EQ(small.sessions().LoadState(kAnn, "s")->size(), static_cast<size_t>(saved));
  KVASIR_ASSERT_OK(small.sessions().Delete(kAnn, "s"));
  small.Create(kAnn, "t");
  small.Learn(kAnn, "t", "room", "again");
}

}  // namespace
}  // namespace kvasir::service

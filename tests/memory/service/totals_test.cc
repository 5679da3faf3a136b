// Totals: users, sessions and memories of the whole store; goal: always what a walk over the store
// counts, through commits, deletions, erasures, eviction and restarts. Method: after every step the
// figures are compared with those of a fresh start over the same folder.
#include <gtest/gtest.h>

#include "memory/service/record_access.h"
#include "tests/memory/service/world.h"

namespace kvasir::service {
namespace {

using Figures = std::vector<int64_t>;  // users, sessions, memories

Figures Now(World& world) {
  const TierStats stats = world.tier().GetStats();
  return {stats.users, stats.sessions, stats.memories};
}

// The figures as they are, which a restart must find again.
Figures AlsoAfterARestart(World& world) {
  const Figures before = Now(world);
  world.Reopen();
  EXPECT_EQ(Now(world), before);
  return before;
}

void Fill(World& world, const UserRef& user, int sessions) {
  for (int i = 0; i < sessions; ++i) {
    const std::string name = "s" + std::to_string(i);
    world.Create(user, name);
    world.Learn(user, name, "my boat number " + std::to_string(i), "noted");
  }
}

TEST(Totals, FollowCommitsDeletionsAndErasures) {
  World world;
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{0, 0, 0}));
  Fill(world, kAnn, 3);
  Fill(world, kBob, 2);
  world.Create(kBob, "empty");
  EXPECT_EQ(Now(world), (Figures{2, 6, 5}));
  world.Learn(kAnn, "s0", "a second turn extends its memory", "noted");
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{2, 6, 5}));
  KVASIR_ASSERT_OK(world.sessions().Delete(kAnn, "s0"));  // with its memory
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{2, 5, 4}));
  const auto memories = world.memories().List(kAnn, {});
  KVASIR_ASSERT_OK(world.memories().Delete(kAnn, memories->items.at(0).name));
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{2, 5, 3}));
  KVASIR_ASSERT_OK(world.tier().EraseUser(kBob).status());  // not loaded since the restart
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{1, 2, 1}));
  EXPECT_EQ(world.sessions().List(kAnn, {})->items.size(), 2u);
  KVASIR_ASSERT_OK(world.tier().EraseUser(kAnn).status());  // loaded
  EXPECT_EQ(Now(world), (Figures{0, 0, 0}));
  KVASIR_ASSERT_OK(world.tier().EraseUser(kAnn).status());
  EXPECT_EQ(Now(world), (Figures{0, 0, 0}));
  Fill(world, kAnn, 1);  // comes again
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{1, 1, 1}));
}

TEST(Totals, LookingAtUsersAndEvictingThemChangesNothing) {
  World world([](TierOptions& options) { options.users_in_ram_max = 1; });
  for (int round = 0; round < 3; ++round) {
    for (const char* name : {"ann", "bob", "carl", "nobody"}) {
      const UserRef user{.user = name};
      if (round == 0 && user.user != "nobody") Fill(world, user, 2);
      EXPECT_TRUE(world.sessions().List(user, {}).ok());
    }
    EXPECT_EQ(Now(world), (Figures{3, 6, 6})) << round;
  }
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{3, 6, 6}));
}

TEST(Totals, AMemoryThatIsBuiltLaterAndOneThatIsMendedAwayAreCounted) {
  World world;
  Fill(world, kAnn, 1);
  world.Create(kAnn, "behind");
  world.Say(kAnn, "behind", "nothing is saved", "so a job builds it");
  EXPECT_EQ(Now(world), (Figures{1, 2, 1}));
  KVASIR_ASSERT_OK(world.sessions().Close(kAnn, "behind").status());
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{1, 2, 2}));
  while (world.tier().RunOneJob()) {
  }
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{1, 2, 2}));
  world.Close();
  {
    const auto store = world.OpenStore();
    MemoryRecord stray;
    stray.id = stray.session = store::RecordId{{0xee}};
    store::Batch batch;
    batch.Put(MemoryKey(world.KeyOf(*store, kAnn), stray.id), Encode(stray));
    KVASIR_ASSERT_OK(store->Commit(batch));
  }
  world.Open();
  EXPECT_EQ(Now(world), (Figures{1, 2, 3}));
  EXPECT_FALSE(world.Findings(Repair::kYes).empty());
  EXPECT_EQ(AlsoAfterARestart(world), (Figures{1, 2, 2}));
}

// A damaged record is counted by its key: it neither stops the server nor falls out of the figures.
TEST(Totals, ADamagedRecordIsCounted) {
  World world;
  Fill(world, kAnn, 2);
  world.Close();
  {
    const auto store = world.OpenStore();
    const store::UserKey user = world.KeyOf(*store, kAnn);
    store::ScanOptions options;
    options.user = user;
    options.kind = store::Kind::kSession;
    const auto page = store->Scan(options);
    ASSERT_TRUE(page.ok()) << page.status();
    store::Batch batch;
    batch.Put(page->records.at(0).key, "no session");
    KVASIR_ASSERT_OK(store->Commit(batch));
  }
  world.Open();
  EXPECT_EQ(Now(world), (Figures{1, 2, 2}));
  EXPECT_FALSE(world.sessions().List(kAnn, {}).ok());
  EXPECT_EQ(Now(world), (Figures{1, 2, 2}));
  KVASIR_ASSERT_OK(world.tier().EraseUser(kAnn).status());
  EXPECT_EQ(Now(world), (Figures{0, 0, 0}));
}

}  // namespace
}  // namespace kvasir::service

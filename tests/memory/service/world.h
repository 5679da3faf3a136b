// World: a memory tier over the real store in a folder of its own, and short forms of what tests do
// with it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "memory/service/memory_tier.h"
#include "memory/store/store.h"
#include "tests/memory/service/test_builder.h"

namespace kvasir::service {

inline constexpr int64_t kSecond = 1000000;
inline const UserRef kAnn{.user = "ann"};
inline const UserRef kBob{.user = "bob"};

inline SessionRecord Named(std::string name) {
  SessionRecord session;
  session.name = std::move(name);
  return session;
}
inline ListPage PageOf(int64_t size, std::string after = "") {
  ListPage page;
  page.size = size;
  page.after = std::move(after);
  return page;
}

// Fails the test where `status` (Status or StatusOr) is not OK.
#define KVASIR_ASSERT_OK(expr)                        \
  do {                                                \
    const ::kvasir::base::Status ok_status_ = (expr); \
    ASSERT_TRUE(ok_status_.ok()) << ok_status_;       \
  } while (false)

class World {
 public:
  explicit World(const std::function<void(TierOptions&)>& set_options = {});
  ~World();

  MemoryTier& tier() { return *tier_; }
  Sessions& sessions() { return tier_->sessions(); }
  Memories& memories() { return tier_->memories(); }
  // Closes the tier and opens it again over the same folder.
  void Reopen();
  void Close() { tier_.reset(); }
  void Open();

  SessionRecord Create(const UserRef& user, const std::string& name,
                       MemoryMode mode = MemoryMode::kReadWrite);
  TurnRecord Begin(const UserRef& user, const std::string& session, const std::string& text,
                   std::vector<MountEntry> mounts = {});
  // Begin and finish.
  TurnRecord Say(const UserRef& user, const std::string& session, const std::string& text,
                 const std::string& reply, std::vector<MountEntry> mounts = {});
  base::Status Finish(const UserRef& user, TurnRecord turn, const std::string& reply);
  // Saves ten tokens of the turn as one part behind what was saved before.
  base::Status Save(const UserRef& user, const std::string& session, int64_t turn);
  // Say and Save: the session's memory, usable at once.
  MemoryRecord Learn(const UserRef& user, const std::string& session, const std::string& text,
                     const std::string& reply);
  TestTail& Tail(const UserRef& user, const std::string& session);
  base::StatusOr<LoadedState> Load(const UserRef& user, const MemoryRecord& memory);
  std::vector<std::string> Found(const UserRef& user, const std::string& query);  // titles
  // Kinds of all findings, sorted.
  std::vector<std::string> Findings(Repair repair);
  static MountEntry MountOf(const MemoryRecord& memory);

  // The store itself; only while the tier is closed.
  std::unique_ptr<store::Store> OpenStore();
  store::UserKey KeyOf(store::Store& store, const UserRef& user) const;

  base::FakeClock clock{int64_t{1764590000} * kSecond};
  base::SystemEntropy entropy;
  TestBuilder builder;
  TierOptions options;

 private:
  std::unique_ptr<MemoryTier> tier_;
  std::map<std::pair<UserRef, std::string>, TestTail> tails_;
};

// Every record, segment row, header and chunk of a user, in clear: key → value.
std::map<std::string, std::string> AllRecords(const store::Store& store,
                                              const store::UserKey& user);
// Keys of records that hold `marker`.
std::vector<std::string> WithMarker(const std::map<std::string, std::string>& records,
                                    const std::string& marker);
// Number of records of a kind.
size_t CountKind(const store::Store& store, const store::UserKey& user, store::Kind kind);

// Runs queued jobs until none is due; how many ran.
int RunJobs(World& world);

}  // namespace kvasir::service

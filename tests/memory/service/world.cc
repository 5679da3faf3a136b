#include "tests/memory/service/world.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "memory/service/record_access.h"

namespace kvasir::service {

World::World(const std::function<void(TierOptions&)>& set_options) {
  if (set_options) set_options(options);
  std::string dir = testing::TempDir() + "kvasir-service-XXXXXX";
  EXPECT_NE(mkdtemp(dir.data()), nullptr) << dir;
  options.dir = dir + "/data";
  Open();
}

World::~World() {
  tier_.reset();
  std::filesystem::remove_all(std::filesystem::path(options.dir).parent_path());
}

void World::Open() {
  auto tier = MemoryTier::Open(options, &clock, &entropy, &builder);
  ASSERT_TRUE(tier.ok()) << tier.status();
  tier_ = *std::move(tier);
}

void World::Reopen() {
  Close();
  Open();
}

SessionRecord World::Create(const UserRef& user, const std::string& name, MemoryMode mode) {
  SessionRecord wanted;
  wanted.name = name;
  wanted.mode = mode;
  clock.Advance(kSecond);
  tails_.erase({user, name});
  const auto session = sessions().Create(user, wanted);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.value_or(SessionRecord());
}

TurnRecord World::Begin(const UserRef& user, const std::string& session, const std::string& text,
                        std::vector<MountEntry> mounts) {
  TurnStart start;
  start.turn.user_text = text;
  start.turn.mode = sessions().Get(user, session).value_or(SessionRecord()).mode;
  start.turn.prompt_ids = {1, 2, 3};
  start.offset = kBaseTokens;
  for (const MountEntry& mount : mounts) start.offset += mount.tokens;
  start.date = "2026-12-01";
  start.mounts_added = std::move(mounts);
  clock.Advance(kSecond);
  auto turn = sessions().BeginTurn(user, session, std::move(start));
  EXPECT_TRUE(turn.ok()) << turn.status();
  return turn.value_or(TurnRecord());
}

base::Status World::Finish(const UserRef& user, TurnRecord turn, const std::string& reply) {
  turn.reply_text = reply;
  turn.reply_ids = {4, 5};
  turn.finish_reason = "STOP";
  clock.Advance(kSecond);
  return sessions().FinishTurn(user, turn);
}

TurnRecord World::Say(const UserRef& user, const std::string& session, const std::string& text,
                      const std::string& reply, std::vector<MountEntry> mounts) {
  const TurnRecord turn = Begin(user, session, text, std::move(mounts));
  const base::Status finished = Finish(user, turn, reply);
  EXPECT_TRUE(finished.ok()) << finished;
  return turn;
}

TestTail& World::Tail(const UserRef& user, const std::string& session) {
  const auto found = tails_.find({user, session});
  if (found != tails_.end()) return found->second;
  const int64_t offset = sessions().Get(user, session).value_or(SessionRecord()).offset;
  return tails_.emplace(std::pair(user, session), TestTail(offset)).first->second;
}

base::Status World::Save(const UserRef& user, const std::string& session, int64_t turn) {
  return sessions().SaveState(user, session, turn, {Tail(user, session).Next(10, turn)},
                              /*replaces_last=*/false);
}

MemoryRecord World::Learn(const UserRef& user, const std::string& session, const std::string& text,
                          const std::string& reply) {
  const TurnRecord turn = Say(user, session, text, reply);
  const base::Status saved = Save(user, session, turn.number);
  EXPECT_TRUE(saved.ok()) << saved;
  const auto record = sessions().Get(user, session);
  EXPECT_TRUE(record.ok() && record->memory) << record.status();
  if (!record.ok() || !record->memory) return {};
  return memories().Get(user, record->memory->Hex()).value_or(MemoryRecord());
}

base::StatusOr<LoadedState> World::Load(const UserRef& user, const MemoryRecord& memory) {
  return memories().Load(user, memory, clock.MonotonicMicros() + kSecond);
}

std::vector<std::string> World::Found(const UserRef& user, const std::string& query) {
  const auto found = memories().Search(user, query, 10);
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<std::string> titles;
  if (!found.ok()) return titles;
  for (const Candidate& candidate : *found) titles.push_back(candidate.memory.title);
  return titles;
}

std::vector<std::string> World::Findings(Repair repair) {
  const auto report = tier().CheckConsistency(repair);
  EXPECT_TRUE(report.ok()) << report.status();
  std::vector<std::string> kinds;
  if (!report.ok()) return kinds;
  for (const Finding& finding : report->findings) {
    kinds.push_back(finding.kind);
    EXPECT_EQ(finding.mended, repair == Repair::kYes) << finding.kind;
  }
  std::ranges::sort(kinds);
  return kinds;
}

MountEntry World::MountOf(const MemoryRecord& memory) {
  return {.memory = memory.id,
          .parts = memory.parts,
          .begin = kBaseTokens,
          .tokens = memory.logical_tokens,
          .visible_from = kBaseTokens + memory.logical_tokens};
}

std::unique_ptr<store::Store> World::OpenStore() {
  auto store = store::Store::Open({.dir = options.dir, .clock = &clock, .entropy = &entropy});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

store::UserKey World::KeyOf(store::Store& store, const UserRef& user) const {
  return store::MakeUserKey(store.key_ring().index_key(), user.tenant, user.user);
}

std::map<std::string, std::string> AllRecords(const store::Store& store,
                                              const store::UserKey& user) {
  std::map<std::string, std::string> records;
  for (int kind = 1; kind <= store::kKindMax; ++kind) {
    if (static_cast<store::Kind>(kind) == store::Kind::kSegment) continue;
    const base::Status read = ForEachRecord(store, user, static_cast<store::Kind>(kind),
                                            std::nullopt, [&](const store::Record& record) {
                                              records[store::EncodeKey(record.key)] = record.value;
                                              return base::OkStatus();
                                            });
    EXPECT_TRUE(read.ok()) << read;
  }
  const base::Status read = ForEachSegment(store, user, [&](const store::SegmentRow& row) {
    const std::string name = "segment " + base::ToHex(row.id);
    records[name] = store.ReadHeader(user, row.id).value_or("unreadable");
    for (int chunk = 0; chunk < row.chunk_count; ++chunk) {
      records[name] += store.ReadChunk(user, row.id, chunk).value_or("unreadable");
    }
  });
  EXPECT_TRUE(read.ok()) << read;
  return records;
}

std::vector<std::string> WithMarker(const std::map<std::string, std::string>& records,
                                    const std::string& marker) {
  std::vector<std::string> found;
  for (const auto& [key, value] : records) {
    if (value.find(marker) != std::string::npos) found.push_back(base::ToHex(base::AsBytes(key)));
  }
  return found;
}

size_t CountKind(const store::Store& store, const store::UserKey& user, store::Kind kind) {
  size_t count = 0;
  const auto counted = ForEachRecord(store, user, kind, std::nullopt, [&](const store::Record&) {
    ++count;
    return base::OkStatus();
  });
  EXPECT_TRUE(counted.ok()) << counted;
  return count;
}

int RunJobs(World& world) {
  int jobs = 0;
  while (world.tier().RunOneJob()) ++jobs;
  return jobs;
}

}  // namespace kvasir::service

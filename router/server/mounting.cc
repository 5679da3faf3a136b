#include "router/server/mounting.h"

#include <algorithm>
#include <utility>

#include "router/server/awaited.h"

namespace kvasir::server {
namespace {

using policy::Unmounted;
using service::MemoryRecord;

constexpr int64_t kLoadDeadlineUs = 2'000'000;  // of all loads of a turn
// A first turn gives at most 1 / kMountShare of the context to memories, and 1 / kSlackShare of
// what is left behind them to later ones.
constexpr int64_t kMountShare = 2;
constexpr int64_t kSlackShare = 4;
constexpr int64_t kOutputReserve = 1024;

Unmounted ReasonOf(const base::Status& status) {
  const std::string reason = base::Reason(status);
  if (reason == "LOAD_TIMEOUT") return Unmounted::kLoadTimeout;
  if (reason == "STATE_CORRUPT") return Unmounted::kStateCorrupt;
  if (reason == "MODEL_MISMATCH") return Unmounted::kModelMismatch;
  if (reason == "NOT_READY") return Unmounted::kNotReady;
  return absl::IsNotFound(status) ? Unmounted::kDeleted : Unmounted::kLoadFailed;
}

// Where the next mount of a session begins.
int64_t FirstFree(const service::SessionRecord& session, int64_t base_tokens) {
  int64_t end = base_tokens;
  for (const service::MountEntry& mount : session.mounts) {
    end = std::max(end, mount.begin + mount.tokens);
  }
  return end;
}

UnusedInfo Unused(const service::MemoryRecord& memory, const policy::LeftOut& out) {
  return {memory.name, memory.title, out.score, out.reason, out.detail};
}

double MsBetween(int64_t begin_us, int64_t end_us) {
  return static_cast<double>(end_us - begin_us) * 1e-3;
}

}  // namespace

void FillTitles(service::MemoryTier& tier, const service::UserRef& user, RouteInfo& route) {
  const auto gone = [&](auto& entry) {
    const auto memory = tier.memories().Get(user, entry.memory);
    if (memory.ok()) entry.title = memory->title;
    return !memory.ok();
  };
  std::erase_if(route.mounts, gone);
  std::erase_if(route.unused, gone);
}

int64_t Mounting::Slack(int64_t used) const {
  const int64_t left = host_.engine().context_tokens_max() - used;
  return std::clamp<int64_t>(left / kSlackShare, 0, options_.mount_slack_tokens);
}

base::StatusOr<bool> Mounting::HasMemories(const service::UserRef& user) const {
  KVASIR_ASSIGN_OR_RETURN(const auto first, tier_.memories().List(user, {.size = 1, .after = {}}));
  return !first.items.empty();
}

policy::MountCandidate Mounting::Snapshot(const MountWish& wish,
                                          const service::Candidate& candidate) const {
  const MemoryRecord& memory = candidate.memory;
  policy::MountCandidate seen{.memory = memory.name,
                              .lexical_hit = candidate.lexical_hit,
                              .lexical_score = candidate.lexical_score,
                              .create_us = memory.create_us,
                              .update_us = memory.update_us,
                              .logical_tokens = memory.logical_tokens,
                              .slots = memory.logical_tokens};
  seen.already_mounted =
      std::ranges::any_of(wish.session->mounts, [&](const service::MountEntry& mount) {
        return mount.memory == memory.id && !mount.deleted;
      });
  const bool is_short =
      memory.logical_tokens > 0 && memory.logical_tokens <= options_.inline_build_tokens_max;
  if (memory.state == MemoryRecord::State::kCorrupt) {
    seen.readiness = policy::Readiness::kCorrupt;
  } else if (memory.state == MemoryRecord::State::kRebuilding) {
    seen.readiness = is_short ? policy::Readiness::kBuildFirst : policy::Readiness::kNotReady;
  } else if (memory.model_id_hex != host_.engine().model_id().digest.Hex()) {
    seen.readiness = policy::Readiness::kModelMismatch;
  } else if (memory.state == MemoryRecord::State::kStale && is_short) {
    seen.readiness = policy::Readiness::kBuildFirst;  // with the turns it lacks
  }
  return seen;
}

policy::MountLimits Mounting::Limits(const MountWish& wish) const {
  const service::SessionRecord& session = *wish.session;
  int64_t mounts = 0, slots = 0;
  for (const service::MountEntry& mount : session.mounts) {
    if (mount.deleted) continue;
    ++mounts;
    slots += mount.tokens;
  }
  policy::MountLimits limits;
  limits.mounts_max = std::min(options_.mounts_per_turn_max, options_.mounts_max - mounts);
  limits.slot_budget = options_.mount_slots_max - slots;
  limits.first_position = FirstFree(session, host_.base_tokens());
  const int64_t context = host_.engine().context_tokens_max();
  const int64_t own = wish.prompt_tokens + std::min(wish.output_tokens, kOutputReserve);
  const int64_t end =
      session.offset >= 0 ? session.offset : std::min(context / kMountShare, context - own);
  limits.free_tokens = std::max<int64_t>(0, end - limits.first_position);
  return limits;
}

base::StatusOr<Mounting::Choice> Mounting::Choose(const MountWish& wish) {
  Choice choice;
  KVASIR_ASSIGN_OR_RETURN(choice.candidates,
                          tier_.memories().Candidates(wish.user, wish.session->name, wish.message));
  for (const service::Candidate& candidate : choice.candidates) {
    choice.seen.push_back(Snapshot(wish, candidate));
  }
  choice.choice =
      policy::ChooseMounts(choice.seen, Limits(wish), wish.first_turn, clock_->WallMicros());
  std::erase_if(choice.choice.left_out, [](const policy::LeftOut& out) {
    return out.reason == Unmounted::kAlreadyMounted;  // among the mounts of the route
  });
  return choice;
}

base::StatusOr<ReadyMount> Mounting::MakeReady(const store::RecordId& memory,
                                               service::LoadedState state, int64_t begin,
                                               MountedInfo* info) {
  using Mountable = base::StatusOr<std::shared_ptr<const runtime::MountableSegment>>;
  auto mountable = Await<Mountable>(
      [&](const auto& done) { host_.engine().MakeMountable(state.digest, state.segment, done); });
  KVASIR_RETURN_IF_ERROR(mountable.status());
  const model::ResidentSegment& resident = *(*mountable)->resident;
  info->tier = state.from_ram ? MountedInfo::Tier::kRam : MountedInfo::Tier::kDisk;
  info->slots = resident.slots();
  info->logical_tokens = resident.logical_tokens();
  info->digest = state.digest.Hex();
  info->frame = begin - resident.first_local();
  return ReadyMount{memory, state.digest, {*std::move(mountable), begin}};
}

std::vector<ReadyMount> Mounting::Keep(const MountWish& wish, const std::vector<ReadyMount>& kept,
                                       RouteInfo* route) {
  std::vector<ReadyMount> ready;
  const int64_t deadline = clock_->MonotonicMicros() + kLoadDeadlineUs;
  for (const service::MountEntry& entry : wish.session->mounts) {
    if (entry.deleted) continue;
    const int64_t begin_us = clock_->MonotonicMicros();
    const auto record = tier_.memories().Get(wish.user, entry.memory.Hex());
    MountedInfo info{.memory = record.ok() ? record->name : entry.memory.Hex(),
                     .title = record.ok() ? record->title : "",
                     .kept = true};
    const auto known = std::ranges::find_if(kept, [&](const ReadyMount& one) {
      return one.memory == entry.memory && one.mount.begin == entry.begin;
    });
    const auto in_ram = known == kept.end() ? nullptr : host_.engine().FindMountable(known->digest);
    base::StatusOr<ReadyMount> mount = base::NotFound("not tried");
    if (in_ram != nullptr) {
      const model::ResidentSegment& resident = *in_ram->resident;
      info.tier = MountedInfo::Tier::kRam;
      info.slots = resident.slots();
      info.logical_tokens = resident.logical_tokens();
      info.digest = known->digest.Hex();
      info.frame = entry.begin - resident.first_local();
      mount = ReadyMount{entry.memory, known->digest, {in_ram, entry.begin}};
    } else if (auto loaded = tier_.memories().LoadMount(wish.user, entry, deadline); loaded.ok()) {
      mount = MakeReady(entry.memory, *std::move(loaded), entry.begin, &info);
    } else {
      mount = loaded.status();
    }
    if (mount.ok()) {
      info.restore_ms = MsBetween(begin_us, clock_->MonotonicMicros());
      ready.push_back(*std::move(mount));
      route->mounts.push_back(std::move(info));
    } else {
      route->unused.push_back(
          {info.memory, info.title, 0, ReasonOf(mount.status()), base::Reason(mount.status())});
    }
  }
  return ready;
}

base::StatusOr<ReadyMount> Mounting::Load(const MountWish& wish, MemoryRecord& memory,
                                          bool build_first, MountedInfo* info) {
  if (build_first) {
    auto built = tier_.memories().BuildNow(wish.user, memory.name);
    // A state that lacks the last turns is better than none.
    if (!built.ok() && memory.state != MemoryRecord::State::kStale) return built.status();
    if (built.ok()) memory = *std::move(built);
  }
  const int64_t deadline = clock_->MonotonicMicros() + kLoadDeadlineUs;
  KVASIR_ASSIGN_OR_RETURN(service::LoadedState state,
                          tier_.memories().Load(wish.user, memory, deadline));
  return MakeReady(memory.id, std::move(state), 0, info);
}

base::StatusOr<MountOutcome> Mounting::Mount(const MountWish& wish,
                                             const std::vector<ReadyMount>& kept) {
  const int64_t begin_us = clock_->MonotonicMicros();
  MountOutcome outcome;
  outcome.ready = Keep(wish, kept, &outcome.route);
  KVASIR_ASSIGN_OR_RETURN(Choice choice, Choose(wish));
  outcome.had_candidates = !choice.candidates.empty();
  int64_t position = FirstFree(*wish.session, host_.base_tokens());
  int64_t room = Limits(wish).free_tokens;
  for (const policy::ChosenMount& chosen : choice.choice.mounts) {
    MemoryRecord& memory = choice.candidates[chosen.candidate].memory;
    const int64_t load_us = clock_->MonotonicMicros();
    MountedInfo info{.memory = memory.name, .title = memory.title, .score = chosen.score};
    auto mount = Load(wish, memory, chosen.build_first, &info);
    if (!mount.ok() || info.logical_tokens > room) {  // built just now, longer than it was said
      policy::LeftOut out{.candidate = chosen.candidate, .score = chosen.score, .detail = {}};
      out.reason = mount.ok() ? Unmounted::kNoRoom : ReasonOf(mount.status());
      outcome.route.unused.push_back(Unused(memory, out));
      continue;
    }
    mount->mount.begin = position;
    info.frame += position;
    info.restore_ms = MsBetween(load_us, clock_->MonotonicMicros());
    outcome.added.push_back({.memory = memory.id,
                             .parts = memory.parts,
                             .begin = position,
                             .tokens = info.logical_tokens,
                             .visible_from = wish.visible_from,
                             .turn = wish.turn});
    position += info.logical_tokens;
    room -= info.logical_tokens;
    outcome.ready.push_back(*std::move(mount));
    outcome.route.mounts.push_back(std::move(info));
  }
  for (const policy::LeftOut& out : choice.choice.left_out) {
    outcome.route.unused.push_back(Unused(choice.candidates[out.candidate].memory, out));
  }
  if (outcome.route.unused.size() > kUnusedShownMax) outcome.route.unused.resize(kUnusedShownMax);
  outcome.route.restore_ms = MsBetween(begin_us, clock_->MonotonicMicros());
  return outcome;
}

base::StatusOr<RouteInfo> Mounting::Explain(const MountWish& wish) {
  RouteInfo route;
  KVASIR_ASSIGN_OR_RETURN(const Choice choice, Choose(wish));
  for (const service::MountEntry& entry : wish.session->mounts) {
    if (entry.deleted) continue;
    const auto record = tier_.memories().Get(wish.user, entry.memory.Hex());
    route.mounts.push_back({.memory = record.ok() ? record->name : entry.memory.Hex(),
                            .title = record.ok() ? record->title : "",
                            .slots = entry.tokens,
                            .logical_tokens = entry.tokens,
                            .kept = true});
  }
  for (const policy::ChosenMount& chosen : choice.choice.mounts) {
    const MemoryRecord& memory = choice.candidates[chosen.candidate].memory;
    route.mounts.push_back({.memory = memory.name,
                            .title = memory.title,
                            .score = chosen.score,
                            .slots = chosen.tokens,
                            .logical_tokens = chosen.tokens});
  }
  for (const policy::LeftOut& out : choice.choice.left_out) {
    route.unused.push_back(Unused(choice.candidates[out.candidate].memory, out));
  }
  if (route.unused.size() > kUnusedShownMax) route.unused.resize(kUnusedShownMax);
  return route;
}

}  // namespace kvasir::server

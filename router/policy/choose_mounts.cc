#include "router/policy/choose_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>

namespace kvasir::policy {
namespace {

using Candidates = std::vector<MountCandidate>;

double Recency(const MountCandidate& candidate, const MountLimits& limits, int64_t now_us) {
  const auto age = static_cast<double>(std::max<int64_t>(0, now_us - candidate.update_us));
  const auto half_life = static_cast<double>(std::max<int64_t>(1, limits.recency_half_life_us));
  return limits.recency_weight * std::exp2(-age / half_life);
}

std::vector<double> Scores(const Candidates& candidates, const MountLimits& limits,
                           int64_t now_us) {
  std::vector<double> scores;
  for (const MountCandidate& candidate : candidates) scores.push_back(candidate.lexical_score);
  if (candidates.size() < kStandardizedMin) return scores;
  const auto n = static_cast<double>(scores.size());
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / n;
  double variance = 0;
  for (const double score : scores) variance += (score - mean) * (score - mean) / n;
  for (size_t i = 0; i < scores.size(); ++i) {
    const double z = variance > 0 ? (scores[i] - mean) / std::sqrt(variance) : 0;
    scores[i] = z + Recency(candidates[i], limits, now_us);
  }
  return scores;
}

// Hits before others; then by score, by recency, by name.
std::vector<size_t> Order(const Candidates& candidates, const std::vector<double>& scores) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    const MountCandidate &x = candidates[a], &y = candidates[b];
    if (x.lexical_hit != y.lexical_hit) return x.lexical_hit;
    if (scores[a] != scores[b]) return scores[a] > scores[b];
    if (x.update_us != y.update_us) return x.update_us > y.update_us;
    return x.memory < y.memory;
  });
  return order;
}

std::optional<Unmounted> NotUsable(const MountCandidate& candidate) {
  if (candidate.already_mounted) return Unmounted::kAlreadyMounted;
  switch (candidate.readiness) {
    case Readiness::kReady:
    case Readiness::kBuildFirst:
      return std::nullopt;
    case Readiness::kNotReady:
      return Unmounted::kNotReady;
    case Readiness::kModelMismatch:
      return Unmounted::kModelMismatch;
    case Readiness::kCorrupt:
      return Unmounted::kStateCorrupt;
  }
  return Unmounted::kNotReady;
}

// The most recent candidate that could be mounted at all.
std::optional<size_t> MostRecent(const Candidates& candidates) {
  std::optional<size_t> best;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (NotUsable(candidates[i])) continue;
    const auto newer = [&](const MountCandidate& a, const MountCandidate& b) {
      return a.update_us != b.update_us ? a.update_us > b.update_us : a.memory < b.memory;
    };
    if (!best || newer(candidates[i], candidates[*best])) best = i;
  }
  return best;
}

// What is left of the limits while mounts are added.
struct Room {
  int64_t mounts, slots, tokens;

  std::optional<LeftOut> Refuse(const MountCandidate& candidate) const {
    LeftOut out;
    if (mounts <= 0) {
      out.reason = Unmounted::kMountLimit;
      out.detail = "better candidates use all mounts of the turn";
    } else if (candidate.slots > slots) {
      out.reason = Unmounted::kSlotBudget;
      out.detail = fmt::format("{} slots, {} left", candidate.slots, slots);
    } else if (candidate.logical_tokens > tokens) {
      out.reason = Unmounted::kNoRoom;
      out.detail = fmt::format("{} tokens, {} positions left in front of the session",
                               candidate.logical_tokens, tokens);
    } else {
      return std::nullopt;
    }
    return out;
  }
  void Take(const MountCandidate& candidate) {
    --mounts;
    slots -= candidate.slots;
    tokens -= candidate.logical_tokens;
  }
};

// Puts the mounts in chronological order and gives them their positions.
void Place(const Candidates& candidates, int64_t position, std::vector<ChosenMount>& mounts) {
  std::ranges::sort(mounts, [&](const ChosenMount& a, const ChosenMount& b) {
    const MountCandidate &x = candidates[a.candidate], &y = candidates[b.candidate];
    return x.create_us != y.create_us ? x.create_us < y.create_us : x.memory < y.memory;
  });
  for (ChosenMount& mount : mounts) {
    mount.begin = position;
    position += mount.tokens;
  }
}

}  // namespace

std::string_view UnmountedName(Unmounted reason) {
  switch (reason) {
    case Unmounted::kBelowGate:
      return "BELOW_GATE";
    case Unmounted::kMountLimit:
      return "MOUNT_LIMIT";
    case Unmounted::kSlotBudget:
      return "SLOT_BUDGET";
    case Unmounted::kNoRoom:
      return "NO_ROOM";
    case Unmounted::kAlreadyMounted:
      return "ALREADY_MOUNTED";
    case Unmounted::kNotReady:
      return "NOT_READY";
    case Unmounted::kModelMismatch:
      return "MODEL_MISMATCH";
    case Unmounted::kStateCorrupt:
      return "STATE_CORRUPT";
    case Unmounted::kModeOff:
      return "MODE_OFF";
    case Unmounted::kLoadTimeout:
      return "LOAD_TIMEOUT";
    case Unmounted::kLoadFailed:
      return "LOAD_FAILED";
    case Unmounted::kDeleted:
      return "DELETED";
  }
  return "UNKNOWN";
}

MountChoice ChooseMounts(const Candidates& candidates, const MountLimits& limits,
                         bool is_first_turn, int64_t now_us) {
  const std::vector<double> scores = Scores(candidates, limits, now_us);
  const bool any_hit = std::ranges::any_of(candidates, &MountCandidate::lexical_hit);
  const std::optional<size_t> greeting =
      is_first_turn && !any_hit ? MostRecent(candidates) : std::nullopt;
  Room room{limits.mounts_max, limits.slot_budget, limits.free_tokens};
  MountChoice choice;
  for (const size_t i : Order(candidates, scores)) {
    const MountCandidate& candidate = candidates[i];
    LeftOut out;
    if (const auto reason = NotUsable(candidate)) {
      out.reason = *reason;
    } else if (!candidate.lexical_hit && greeting != i) {
      out.reason = Unmounted::kBelowGate;
      out.detail = "no word in common with the message";
    } else if (auto refused = room.Refuse(candidate)) {
      out = *std::move(refused);
    } else {
      room.Take(candidate);
      choice.mounts.push_back({.candidate = i,
                               .score = scores[i],
                               .tokens = candidate.logical_tokens,
                               .build_first = candidate.readiness == Readiness::kBuildFirst});
      continue;
    }
    out.candidate = i;
    out.score = scores[i];
    choice.left_out.push_back(std::move(out));
  }
  Place(candidates, limits.first_position, choice.mounts);
  return choice;
}

MountChoice MountNothing(const Candidates& candidates, Unmounted reason) {
  MountChoice choice;
  for (size_t i = 0; i < candidates.size(); ++i) {
    choice.left_out.push_back(
        {.candidate = i, .score = candidates[i].lexical_score, .reason = reason, .detail = ""});
  }
  std::ranges::stable_sort(choice.left_out,
                           [](const LeftOut& a, const LeftOut& b) { return a.score > b.score; });
  return choice;
}

}  // namespace kvasir::policy

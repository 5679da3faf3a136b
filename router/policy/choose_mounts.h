// Which memories a turn mounts, and why each other one stays out: a pure function over a snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::policy {

// Whether a candidate's state can be mounted now.
enum class Readiness : uint8_t {
  kReady,
  kBuildFirst,  // no state yet, and short enough to be built before the turn
  kNotReady,
  kModelMismatch,
  kCorrupt,
};

struct MountCandidate {
  std::string memory;  // how the caller names it; equal scores are decided by it
  Readiness readiness = Readiness::kReady;
  bool already_mounted = false;  // by an earlier turn of the session
  bool lexical_hit = false;      // has a term in common with the message
  double lexical_score = 0;      // BM25* (memory/index/lexical_index.h)
  int64_t create_us = 0;         // orders memories in front of the session
  int64_t update_us = 0;         // what recency is counted from
  int64_t logical_tokens = 0;    // positions it takes
  int64_t slots = 0;             // most slots of one head: what attending to it costs
};

struct MountLimits {
  int64_t mounts_max = 3;       // new ones in this turn
  int64_t slot_budget = 4096;   // slots left for new mounts
  int64_t free_tokens = 0;      // positions left in front of the session
  int64_t first_position = 0;   // where the first new mount begins
  double recency_weight = 0.5;  // of a memory of this moment, in standard deviations of BM25*
  int64_t recency_half_life_us = int64_t{7} * 24 * 3600 * 1000000;
};

// Why a candidate is not mounted. The last three are found out after the choice, while loading.
enum class Unmounted : uint8_t {
  kBelowGate,   // no term in common with the message
  kMountLimit,  // others that score better use all mounts
  kSlotBudget,
  kNoRoom,  // its positions do not fit in front of the session
  kAlreadyMounted,
  kNotReady,
  kModelMismatch,
  kStateCorrupt,
  kModeOff,  // the turn's mode mounts nothing
  kLoadTimeout,
  kLoadFailed,
  kDeleted,
};
// "BELOW_GATE", …
std::string_view UnmountedName(Unmounted reason);

struct ChosenMount {
  size_t candidate = 0;  // index into the snapshot
  double score = 0;
  int64_t begin = 0;  // logical position of its first token
  int64_t tokens = 0;
  bool build_first = false;
};

struct LeftOut {
  size_t candidate = 0;
  double score = 0;
  Unmounted reason = Unmounted::kBelowGate;
  std::string detail;  // both values where it is a limit: "1303 slots, 871 left"
};

struct MountChoice {
  std::vector<ChosenMount> mounts;  // oldest first, positions without a gap
  std::vector<LeftOut> left_out;    // best first
};

inline constexpr size_t kStandardizedMin = 4;

// Score = z(BM25*) + recency_weight · 2^(−age / half life), z over the candidates; with fewer than
// kStandardizedMin candidates BM25 order, ties by recency. Candidates that share no term with the
// message stay out, but for one: at a session's first turn without any hit the most recent usable
// memory is mounted (people say "hi" first). Best first, each that fits what the better ones left.
// Every candidate is in exactly one of the two lists.
MountChoice ChooseMounts(const std::vector<MountCandidate>& candidates, const MountLimits& limits,
                         bool is_first_turn, int64_t now_us);

// A choice that mounts nothing, with `reason` for every candidate.
MountChoice MountNothing(const std::vector<MountCandidate>& candidates, Unmounted reason);

}  // namespace kvasir::policy

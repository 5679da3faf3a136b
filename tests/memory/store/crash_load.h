// The load of the crash test: batch `n` of thread `t` is a pure function of (t, n), so that what a
// killed process left can be checked by another.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "memory/store/store.h"

namespace kvasir::store {

inline constexpr int kLoadThreads = 4;

// Thread → number of its batches that were acknowledged (batches are numbered from 0).
using Acknowledged = std::map<int, uint64_t>;

// Commits without end from kLoadThreads threads, each going on after its last batch in the store;
// prints "t n\n" to `fd` after each acknowledgement in one write.
[[noreturn]] void RunLoad(const std::string& dir, int fd);

// Checks the store in `dir` against what was acknowledged: every such batch present and equal, none
// half, no orphan left after a sweep. Returns what is wrong, or "".
std::string CheckLoad(const std::string& dir, const Acknowledged& acknowledged);

// Number of batches of each thread in the store.
Acknowledged LoadedBatches(const std::string& dir);

}  // namespace kvasir::store

// Memories: finding them by words.
#include <algorithm>

#include "memory/service/memories_impl.h"

namespace kvasir::service {

base::StatusOr<std::vector<Candidate>> MemoriesImpl::Search(const UserRef& user,
                                                            const std::string& query,
                                                            int64_t top_k) {
  if (top_k < 1) return base::InvalidArgument("top_k is {}, at least 1", top_k);
  const index::TermCounts terms = core_.analyzer->Analyze(query);
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  absl::MutexLock lock(&shared->mutex);
  std::vector<Candidate> found;
  for (const index::Hit& hit : shared->index.Query(terms)) {
    if (std::ssize(found) == top_k) break;
    const auto memory = shared->memories.find(store::RecordId{hit.id});
    if (memory == shared->memories.end()) continue;
    found.push_back({.memory = memory->second,
                     .lexical_hit = true,
                     .lexical_score = hit.score,
                     .best_turn = hit.best_turn});
  }
  return found;
}

base::StatusOr<std::vector<Candidate>> MemoriesImpl::Candidates(const UserRef& user,
                                                                const std::string& session,
                                                                const std::string& message) {
  const index::TermCounts terms = core_.analyzer->Analyze(message);
  KVASIR_ASSIGN_OR_RETURN(const SharedUser shared, core_.users.Shared(user));
  const std::optional<store::RecordId> own = shared->FindSession(session);
  std::vector<Candidate> candidates;
  {
    absl::MutexLock lock(&shared->mutex);
    std::map<index::MemoryId, index::Hit> hits;
    for (const index::Hit& hit : shared->index.Query(terms)) hits[hit.id] = hit;
    for (const auto& [id, memory] : shared->memories) {
      if (own && memory.session == *own) continue;
      Candidate& candidate = candidates.emplace_back();
      candidate.memory = memory;
      const auto hit = hits.find(id.bytes);
      if (hit == hits.end()) continue;
      candidate.lexical_hit = true;
      candidate.lexical_score = hit->second.score;
      candidate.best_turn = hit->second.best_turn;
    }
  }
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.memory.create_us > b.memory.create_us;
  });
  return candidates;
}

}  // namespace kvasir::service

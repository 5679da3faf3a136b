// MemoriesImpl: Memories over the store. Its methods stand in memory_records.cc, memory_search.cc,
// memory_load.cc and deletion.cc. Internal.
#pragma once

#include <string>
#include <vector>

#include "memory/service/core.h"
#include "memory/service/memories.h"

namespace kvasir::service {

class MemoriesImpl final : public Memories {
 public:
  explicit MemoriesImpl(Core* core) : core_(*core) {}

  base::StatusOr<MemoryRecord> Get(const UserRef& user, const std::string& memory) override;
  base::StatusOr<Listed<MemoryRecord>> List(const UserRef& user, const ListPage& page) override;
  base::StatusOr<std::vector<TurnRecord>> SourceTurns(const UserRef& user,
                                                      const MemoryRecord& memory) override;
  base::StatusOr<std::vector<Candidate>> Search(const UserRef& user, const std::string& query,
                                                int64_t top_k) override;
  base::StatusOr<std::vector<Candidate>> Candidates(const UserRef& user, const std::string& session,
                                                    const std::string& message) override;
  base::StatusOr<LoadedState> Load(const UserRef& user, const MemoryRecord& memory,
                                   int64_t deadline_us) override;
  base::StatusOr<LoadedState> LoadMount(const UserRef& user, const MountEntry& mount,
                                        int64_t deadline_us) override;
  base::StatusOr<MemoryRecord> BuildNow(const UserRef& user, const std::string& memory) override;
  void RecordUse(const UserRef& user, const store::RecordId& memory) override;
  base::Status Delete(const UserRef& user, const std::string& memory) override;

 private:
  // Loads parts of the live memory `id`; `loadable`: what speaks against it before any is read.
  base::StatusOr<LoadedState> LoadParts(const UserRef& user, const store::RecordId& id,
                                        const std::vector<StatePart>& parts,
                                        const base::Status& loadable, int64_t deadline_us);

  Core& core_;
};

// Writes the use counts that are in RAM only. Errors are left for the next call.
void SaveUses(Core& core);

}  // namespace kvasir::service

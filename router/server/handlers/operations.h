// Operations: work that goes on after the call that asked for it. What was done to erase a user is
// read from its durable record; closed sessions are kept here until the server ends or 24 hours
// have passed (the memory itself is made in any case).
//
// Threads: all methods may be called concurrently; Get blocks on the store.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "kvasir/v1/operation.pb.h"
#include "memory/service/memory_tier.h"

namespace kvasir::server {

inline constexpr size_t kOperationsMax = 10'000;
inline constexpr int64_t kOperationHours = 24;

class Operations {
 public:
  Operations(const base::Clock* clock, base::Entropy* entropy) : clock_(clock), entropy_(entropy) {}

  // The operation of closing `session`, which is closed; done once its memory has a state.
  v1::Operation AddClose(service::MemoryTier& tier, const service::UserRef& user,
                         const service::SessionRecord& session);
  // The operation of an erasure.
  static v1::Operation OfErasure(const service::ErasureRecord& erasure);
  // As it is now. Errors: NotFound, Unavailable.
  base::StatusOr<v1::Operation> Get(service::MemoryTier& tier, const std::string& id) const;

 private:
  struct Close {
    service::UserRef user;
    std::string session;
    std::string memory;  // hexadecimal; empty: none is made
    int64_t create_us = 0;
  };
  static v1::Operation OfClose(service::MemoryTier& tier, const std::string& id,
                               const Close& close);

  const base::Clock* const clock_;
  base::Entropy* const entropy_;
  mutable std::mutex mutex_;
  std::map<std::string, Close> closes_;
  std::deque<std::string> order_;  // oldest first
};

}  // namespace kvasir::server

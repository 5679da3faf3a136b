// RouteInfo: which memories a turn read, and why the others were left out. Kept with the turn as
// JSON that holds ids and numbers only: titles are looked up when it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "memory/service/records.h"
#include "router/policy/choose_mounts.h"

namespace kvasir::server {

inline constexpr size_t kUnusedShownMax = 64;

struct MountedInfo {
  std::string memory;  // last part of its name
  std::string title;   // not part of the JSON
  double score = 0;
  enum class Tier : uint8_t { kUnknown, kRam, kDisk } tier = Tier::kUnknown;
  int64_t slots = 0;
  int64_t logical_tokens = 0;
  double restore_ms = 0;
  std::string digest{};  // hexadecimal
  int64_t frame = 0;
  bool kept = false;  // mounted by an earlier turn
};

struct UnusedInfo {
  std::string memory;
  std::string title;  // not part of the JSON
  double score = 0;
  policy::Unmounted reason = policy::Unmounted::kBelowGate;
  std::string detail;
};

struct RouteInfo {
  service::MemoryMode mode = service::MemoryMode::kReadWrite;
  std::vector<MountedInfo> mounts;  // in order of position
  std::vector<UnusedInfo> unused;   // best first, at most kUnusedShownMax
  double restore_ms = 0;

  int64_t slots() const;
  int64_t logical_tokens() const;
};

std::string ToJson(const RouteInfo& route);
// Errors: DataLoss (not what ToJson writes).
base::StatusOr<RouteInfo> RouteFromJson(std::string_view json);

}  // namespace kvasir::server

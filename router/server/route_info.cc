#include "router/server/route_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace kvasir::server {
namespace {

using nlohmann::json;

constexpr int kReasonCount = static_cast<int>(policy::Unmounted::kDeleted) + 1;

json MountJson(const MountedInfo& mount) {
  return {{"memory", mount.memory},
          {"score", mount.score},
          {"tier", static_cast<int>(mount.tier)},
          {"slots", mount.slots},
          {"logical_tokens", mount.logical_tokens},
          {"restore_ms", mount.restore_ms},
          {"digest", mount.digest},
          {"frame", mount.frame},
          {"kept", mount.kept}};
}

base::StatusOr<policy::Unmounted> ReasonOf(const std::string& name) {
  for (int i = 0; i < kReasonCount; ++i) {
    if (policy::UnmountedName(static_cast<policy::Unmounted>(i)) == name) {
      return static_cast<policy::Unmounted>(i);
    }
  }
  return base::DataLoss("'{}' is no reason of a route", name);
}

// Member `name` of `object`, or the default of T when it is missing or of another type.
template <typename T>
T Get(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return T{};
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<std::string>() : T{};
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() && found->get<bool>();
  } else {
    return found->is_number() ? found->get<T>() : T{};
  }
}

MountedInfo MountFrom(const json& object) {
  const int64_t tier = std::clamp<int64_t>(Get<int64_t>(object, "tier"), 0, 2);
  return {.memory = Get<std::string>(object, "memory"),
          .title = {},
          .score = Get<double>(object, "score"),
          .tier = static_cast<MountedInfo::Tier>(tier),
          .slots = Get<int64_t>(object, "slots"),
          .logical_tokens = Get<int64_t>(object, "logical_tokens"),
          .restore_ms = Get<double>(object, "restore_ms"),
          .digest = Get<std::string>(object, "digest"),
          .frame = Get<int64_t>(object, "frame"),
          .kept = Get<bool>(object, "kept")};
}

}  // namespace

int64_t RouteInfo::slots() const {
  int64_t sum = 0;
  for (const MountedInfo& mount : mounts) sum += mount.slots;
  return sum;
}

int64_t RouteInfo::logical_tokens() const {
  int64_t sum = 0;
  for (const MountedInfo& mount : mounts) sum += mount.logical_tokens;
  return sum;
}

std::string ToJson(const RouteInfo& route) {
  json mounts = json::array(), unused = json::array();
  for (const MountedInfo& mount : route.mounts) mounts.push_back(MountJson(mount));
  for (const UnusedInfo& one : route.unused) {
    unused.push_back({{"memory", one.memory},
                      {"score", one.score},
                      {"reason", policy::UnmountedName(one.reason)},
                      {"detail", one.detail}});
  }
  const json all = {{"mode", static_cast<int>(route.mode)},
                    {"mounts", std::move(mounts)},
                    {"unused", std::move(unused)},
                    {"restore_ms", route.restore_ms}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

base::StatusOr<RouteInfo> RouteFromJson(std::string_view text) {
  RouteInfo route;
  const json all = json::parse(text, nullptr, false);
  if (!all.is_object()) return base::DataLoss("the route of {} bytes is no JSON", text.size());
  route.mode =
      static_cast<service::MemoryMode>(std::clamp<int64_t>(Get<int64_t>(all, "mode"), 0, 3));
  route.restore_ms = Get<double>(all, "restore_ms");
  const auto list = [&](const char* name) {
    const auto found = all.find(name);
    return found != all.end() && found->is_array() ? *found : json::array();
  };
  for (const json& mount : list("mounts")) route.mounts.push_back(MountFrom(mount));
  for (const json& one : list("unused")) {
    KVASIR_ASSIGN_OR_RETURN(const policy::Unmounted reason,
                            ReasonOf(Get<std::string>(one, "reason")));
    route.unused.push_back({.memory = Get<std::string>(one, "memory"),
                            .title = {},
                            .score = Get<double>(one, "score"),
                            .reason = reason,
                            .detail = Get<std::string>(one, "detail")});
  }
  return route;
}

}  // namespace kvasir::server

// Resource names of api.md as values: parsed strictly, formatted back to the same bytes.
//
// An id is 1 to kIdBytesMax characters of A-Z a-z 0-9 . _ ~ @ + -, the first a letter or digit. The
// tenant is never part of a name. Every parser fails with INVALID_FIELD and names `field`, the
// request field that held the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::server {

inline constexpr size_t kIdBytesMax = 128;
inline constexpr int64_t kTurnNumberMax = 1'000'000;

struct UserName {
  std::string user;
  bool operator==(const UserName&) const = default;
};

struct SessionName {
  std::string user;
  std::string session;
  bool operator==(const SessionName&) const = default;
};

struct TurnName {
  std::string user;
  std::string session;
  int64_t turn = 0;  // 1 to kTurnNumberMax
  bool operator==(const TurnName&) const = default;
};

struct MemoryName {
  std::string user;
  std::string memory;
  bool operator==(const MemoryName&) const = default;
};

// Errors of the functions below: InvalidArgument (INVALID_FIELD, names the field).
base::Status CheckId(std::string_view id, std::string_view field);
base::StatusOr<UserName> ParseUserName(std::string_view name, std::string_view field);
base::StatusOr<SessionName> ParseSessionName(std::string_view name, std::string_view field);
base::StatusOr<TurnName> ParseTurnName(std::string_view name, std::string_view field);
base::StatusOr<MemoryName> ParseMemoryName(std::string_view name, std::string_view field);
// The last part of `operations/{id}`, `erasures/{id}`, `models/{id}`.
base::StatusOr<std::string> ParseOperationName(std::string_view name, std::string_view field);
base::StatusOr<std::string> ParseErasureName(std::string_view name, std::string_view field);
base::StatusOr<std::string> ParseModelName(std::string_view name, std::string_view field);

std::string Format(const UserName& name);
std::string Format(const SessionName& name);
std::string Format(const TurnName& name);
std::string Format(const MemoryName& name);
std::string FormatOperation(std::string_view operation);
std::string FormatErasure(std::string_view erasure);
std::string FormatModel(std::string_view model);

}  // namespace kvasir::server

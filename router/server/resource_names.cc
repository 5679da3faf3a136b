#include "router/server/resource_names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "router/server/invalid_field.h"
#include "router/server/utf8.h"

namespace kvasir::server {
namespace {

// The text of a name in a message: short, and valid UTF-8.
std::string Shown(std::string_view text) {
  constexpr size_t kShownBytesMax = 80;
  std::string shown = ReplaceInvalidUtf8(text.substr(0, kShownBytesMax));
  if (text.size() > kShownBytesMax) shown += "…";
  return shown;
}

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsId(std::string_view id) {
  return !id.empty() && id.size() <= kIdBytesMax && IsLetterOrDigit(id[0]) &&
         std::ranges::all_of(id, [](char c) {
           return IsLetterOrDigit(c) ||
                  std::string_view("._~@+-").find(c) != std::string_view::npos;
         });
}

// Matches `name` against a pattern such as "users/{}/sessions/{}" and returns what stands at the
// {}, or nothing. The parts are not looked at.
std::optional<std::vector<std::string_view>> Split(std::string_view name,
                                                   std::string_view pattern) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t hole = pattern.find("{}");
    const std::string_view literal = pattern.substr(0, hole);
    if (!name.starts_with(literal)) return std::nullopt;
    name.remove_prefix(literal.size());
    if (hole == std::string_view::npos) break;
    pattern.remove_prefix(hole + 2);
    const size_t end = std::min(name.find('/'), name.size());
    parts.push_back(name.substr(0, end));
    name.remove_prefix(end);
  }
  if (!name.empty()) return std::nullopt;
  return parts;
}

base::StatusOr<std::vector<std::string_view>> Parse(std::string_view name, std::string_view pattern,
                                                    std::string_view shape,
                                                    std::string_view field) {
  const auto parts = Split(name, pattern);
  if (name.empty()) return InvalidField(field, "is required: a name of the form {}", shape);
  if (!parts) return InvalidField(field, "'{}' is no name of the form {}", Shown(name), shape);
  return *parts;
}

// A name with one or two ids.
base::StatusOr<std::vector<std::string_view>> ParseIds(std::string_view name,
                                                       std::string_view pattern,
                                                       std::string_view shape,
                                                       std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(auto parts, Parse(name, pattern, shape, field));
  for (const std::string_view part : parts) KVASIR_RETURN_IF_ERROR(CheckId(part, field));
  return parts;
}

base::StatusOr<int64_t> ParseTurnNumber(std::string_view text, std::string_view field) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || text[0] < '1' || text[0] > '9' || number > kTurnNumberMax) {
    return InvalidField(field, "turn '{}' is no number from 1 to {}", Shown(text), kTurnNumberMax);
  }
  return number;
}

base::StatusOr<std::string> ParseTopLevel(std::string_view name, std::string_view collection,
                                          std::string_view shape, std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(auto parts, ParseIds(name, collection, shape, field));
  return std::string(parts[0]);
}

}  // namespace

base::Status CheckId(std::string_view id, std::string_view field) {
  if (IsId(id)) return base::OkStatus();
  return InvalidField(
      field,
      "id '{}' ({} bytes) is not 1 to {} characters of A-Z a-z 0-9 . _ ~ @ + - with "
      "a letter or digit first",
      Shown(id), id.size(), kIdBytesMax);
}

base::StatusOr<UserName> ParseUserName(std::string_view name, std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(auto parts, ParseIds(name, "users/{}", "users/{user}", field));
  return UserName{std::string(parts[0])};
}

base::StatusOr<SessionName> ParseSessionName(std::string_view name, std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(
      auto parts, ParseIds(name, "users/{}/sessions/{}", "users/{user}/sessions/{session}", field));
  return SessionName{std::string(parts[0]), std::string(parts[1])};
}

base::StatusOr<TurnName> ParseTurnName(std::string_view name, std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(auto parts, Parse(name, "users/{}/sessions/{}/turns/{}",
                                            "users/{user}/sessions/{session}/turns/{n}", field));
  KVASIR_RETURN_IF_ERROR(CheckId(parts[0], field));
  KVASIR_RETURN_IF_ERROR(CheckId(parts[1], field));
  KVASIR_ASSIGN_OR_RETURN(const int64_t number, ParseTurnNumber(parts[2], field));
  return TurnName{std::string(parts[0]), std::string(parts[1]), number};
}

base::StatusOr<MemoryName> ParseMemoryName(std::string_view name, std::string_view field) {
  KVASIR_ASSIGN_OR_RETURN(
      auto parts, ParseIds(name, "users/{}/memories/{}", "users/{user}/memories/{memory}", field));
  return MemoryName{std::string(parts[0]), std::string(parts[1])};
}

base::StatusOr<std::string> ParseOperationName(std::string_view name, std::string_view field) {
  return ParseTopLevel(name, "operations/{}", "operations/{operation}", field);
}

base::StatusOr<std::string> ParseErasureName(std::string_view name, std::string_view field) {
  return ParseTopLevel(name, "erasures/{}", "erasures/{erasure}", field);
}

base::StatusOr<std::string> ParseModelName(std::string_view name, std::string_view field) {
  return ParseTopLevel(name, "models/{}", "models/{model}", field);
}

std::string Format(const UserName& name) { return fmt::format("users/{}", name.user); }
std::string Format(const SessionName& name) {
  return fmt::format("users/{}/sessions/{}", name.user, name.session);
}
std::string Format(const TurnName& name) {
  return fmt::format("users/{}/sessions/{}/turns/{}", name.user, name.session, name.turn);
}
std::string Format(const MemoryName& name) {
  return fmt::format("users/{}/memories/{}", name.user, name.memory);
}
std::string FormatOperation(std::string_view operation) {
  return fmt::format("operations/{}", operation);
}
std::string FormatErasure(std::string_view erasure) { return fmt::format("erasures/{}", erasure); }
std::string FormatModel(std::string_view model) { return fmt::format("models/{}", model); }

}  // namespace kvasir::server

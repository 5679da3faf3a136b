// Reasons: the table against docs/api.md; goal: a client meets documented reasons with their
// documented code only.
#include "router/server/reasons.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"

namespace kvasir::server {
namespace {

// Rows "| `REASON` | CODE | …" of docs/api.md.
std::map<std::string, std::string> Documented() {
  std::map<std::string, std::string> rows;
  std::ifstream file("docs/api.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    const size_t name_end = line.find('`', 3);
    const size_t code = name_end + 4;
    if (line.substr(name_end, 4) != "` | ") continue;
    rows[line.substr(3, name_end - 3)] = line.substr(code, line.find(' ', code) - code);
  }
  return rows;
}

TEST(Reasons, AreTheOnesThatTheApiPageListsWithTheirCodes) {
  std::map<std::string, std::string> table;
  for (const ReasonInfo& reason : AllReasons()) {
    table[std::string(reason.name)] = absl::StatusCodeToString(reason.code);
  }
  EXPECT_EQ(table, Documented());
}

TEST(Reasons, EveryCodeHasOneThatStandsForIt) {
  for (int code = 1; code <= 16; ++code) {
    const auto& reason = FindReason("NO_SUCH_REASON", static_cast<absl::StatusCode>(code));
    const bool renamed =
        code == 2 /* unknown */ || code == 11 /* out of range */ || code == 12 /* unimplemented */;
    if (!renamed) {
      EXPECT_EQ(static_cast<int>(reason.code), code);
    }
  }
}

TEST(Reasons, AreListedOnceInOrder) {
  const auto all = AllReasons();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
}

}  // namespace
}  // namespace kvasir::server

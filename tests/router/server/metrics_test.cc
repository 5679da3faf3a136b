// Metrics: the page after known events; goal: names and labels stay what docs/operations.md says.
#include "router/server/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace kvasir::server {
namespace {

using testing::HasSubstr;

void RecordOneOfEach(Metrics* metrics) {
  metrics->RecordCall("SessionService/Chat", "OK");
  metrics->RecordTurn({.computed_tokens = 7,
                       .session_cached_tokens = 100,
                       .memory_tokens = 2000,
                       .output_tokens = 12,
                       .ttft_s = 0.3});
  metrics->RecordInterTokenLatency(0.03);
  metrics->RecordHit("disk", 0.004);
  metrics->RecordMiss("MODEL_MISMATCH");
  metrics->RecordLostStream("SLOW_READER");
  metrics->SetLevels({.queued_turns = 4, .state_disk_bytes = 1000});
}

TEST(Metrics, CountWhatHappened) {
  Metrics metrics;
  RecordOneOfEach(&metrics);
  const std::string page = metrics.Page();
  EXPECT_THAT(page,
              HasSubstr("kvasir_requests_total{code=\"OK\",method=\"SessionService/Chat\"} 1"));
  EXPECT_THAT(page, HasSubstr("kvasir_prompt_tokens_total{source=\"memory\"} 2000"));
  EXPECT_THAT(page, HasSubstr("kvasir_prompt_tokens_total{source=\"session\"} 100"));
  EXPECT_THAT(page, HasSubstr("kvasir_prompt_tokens_total{source=\"computed\"} 7"));
  EXPECT_THAT(page, HasSubstr("kvasir_output_tokens_total 12"));
  EXPECT_THAT(page, HasSubstr("kvasir_ttft_seconds_bucket{le=\"0.5\"} 1"));
  EXPECT_THAT(page, HasSubstr("kvasir_ttft_seconds_bucket{le=\"0.2\"} 0"));
  EXPECT_THAT(page, HasSubstr("kvasir_restore_seconds_count{tier=\"disk\"} 1"));
  EXPECT_THAT(page, HasSubstr("kvasir_memory_misses_total{reason=\"MODEL_MISMATCH\"} 1"));
  EXPECT_THAT(page, HasSubstr("kvasir_lost_streams_total{reason=\"SLOW_READER\"} 1"));
  EXPECT_THAT(page, HasSubstr("kvasir_queue_depth 4"));
  EXPECT_THAT(page, HasSubstr("kvasir_state_bytes{tier=\"disk\"} 1000"));
}

TEST(Metrics, ATurnWithoutATokenHasNoTimeToFirstToken) {
  Metrics metrics;
  metrics.RecordTurn({.computed_tokens = 7});
  EXPECT_THAT(metrics.Page(), HasSubstr("kvasir_ttft_seconds_count 0"));
}

TEST(Metrics, AreTheOnesThatTheOperationsPageLists) {
  Metrics metrics;
  RecordOneOfEach(&metrics);
  const auto names = [](const std::string& text, const std::regex& pattern) {
    std::set<std::string> found;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
      found.insert((*it)[1]);
    }
    return found;
  };
  std::ifstream file("docs/operations.md");
  std::stringstream document;
  document << file.rdbuf();
  EXPECT_EQ(names(metrics.Page(), std::regex("# TYPE (kvasir_\\w+)")),
            names(document.str(), std::regex("\n\\| `(kvasir_\\w+)")));
}

TEST(Metrics, AnAddressThatIsTakenOrWrongIsAnError) {
  Metrics metrics;
  EXPECT_EQ(metrics.Expose("nonsense").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(metrics.Expose("192.0.2.1:80").code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace kvasir::server

#include "router/server/request_rules.h"

#include <algorithm>

namespace kvasir::server {
namespace {

constexpr double kSeedMax = 2147483646;
constexpr double kPageSizeMax = 1000;
constexpr double kChatMessageBytesMax = 1 << 20;

constexpr FieldRule kRules[] = {
    {"ChatRequest.message", RuleKind::kBytes, 1, kChatMessageBytesMax},
    {"ChatRequest.max_output_tokens", RuleKind::kRange, 1, 32768},
    {"ChatRequest.temperature", RuleKind::kRange, 0, 2},
    {"ChatRequest.top_p", RuleKind::kRangeOpen, 0, 1},
    {"ChatRequest.top_k", RuleKind::kRange, 0, 1000},
    {"ChatRequest.min_p", RuleKind::kRange, 0, 1},
    {"ChatRequest.seed", RuleKind::kRange, 0, kSeedMax},
    {"ChatRequest.stop", RuleKind::kList, 0, 8, 256},
    {"ChatRequest.request_id", RuleKind::kRequestId, 1, 128},
    {"ChatRequest.resume_after_seq", RuleKind::kRange, 0, 1 << 20},
    {"ExplainRouteRequest.message", RuleKind::kBytes, 0, kChatMessageBytesMax},
    {"ListMemoriesRequest.page_size", RuleKind::kRange, 0, kPageSizeMax},
    {"ListSessionsRequest.page_size", RuleKind::kRange, 0, kPageSizeMax},
    {"ListTurnsRequest.page_size", RuleKind::kRange, 0, kPageSizeMax},
    {"SearchMemoriesRequest.query", RuleKind::kBytes, 1, 8192},
    {"SearchMemoriesRequest.top_k", RuleKind::kRange, 0, 100},
    {"Session.close_time", RuleKind::kUnset},
    {"Session.create_time", RuleKind::kUnset},
    {"Session.display_name", RuleKind::kBytes, 0, 256},
    {"Session.memory", RuleKind::kUnset},
    {"Session.name", RuleKind::kUnset},
    {"Session.state", RuleKind::kUnset},
    {"Session.system_prompt", RuleKind::kBytes, 0, 65536},
    {"Session.turn_count", RuleKind::kUnset},
    {"Session.update_time", RuleKind::kUnset},
    {"WaitOperationRequest.timeout", RuleKind::kDuration, 0, 600},
};

}  // namespace

const FieldRule* FindRule(std::string_view field) {
  const auto* found = std::ranges::find(kRules, field, &FieldRule::field);
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace kvasir::server

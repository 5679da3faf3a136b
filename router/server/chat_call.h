// ChatCall: what a client asks of one turn, checked and with its defaults filled in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"
#include "engine/runtime/sampler.h"
#include "memory/service/records.h"

namespace kvasir::server {

struct ChatCall {
  service::UserRef user;
  std::string session;
  std::string message;
  std::optional<service::MemoryMode> mode;  // nothing: the session's
  int64_t max_output_tokens = 1024;
  runtime::SamplingParams sampling;  // its seed too, given or drawn
  std::vector<std::string> stop;
  bool logprobs = false;
  std::string request_id;  // empty: none
  base::Digest
      request_digest;  // over everything the client sent but request_id and resume_after_seq
};

// What is kept of a call with its turn: sampling, seed, stop strings, limits.
struct SamplingRecord {
  runtime::SamplingParams sampling;
  int64_t max_output_tokens = 0;
  std::vector<std::string> stop;
  bool logprobs = false;
};
std::string ToJson(const SamplingRecord& record);
// Errors: DataLoss (not what ToJson writes).
base::StatusOr<SamplingRecord> SamplingFromJson(std::string_view json);

}  // namespace kvasir::server

#include "router/server/chat_call.h"

#include <nlohmann/json.hpp>

namespace kvasir::server {

using nlohmann::json;

std::string ToJson(const SamplingRecord& record) {
  const json all = {{"temperature", record.sampling.temperature},
                    {"top_p", record.sampling.top_p},
                    {"top_k", record.sampling.top_k},
                    {"min_p", record.sampling.min_p},
                    {"seed", record.sampling.seed},
                    {"max_output_tokens", record.max_output_tokens},
                    {"stop", record.stop},
                    {"logprobs", record.logprobs}};
  return all.dump();
}

base::StatusOr<SamplingRecord> SamplingFromJson(std::string_view text) {
  const json all = json::parse(text, nullptr, false);
  const auto number = [&](const char* name) { return all.contains(name) && all[name].is_number(); };
  for (const char* name : {"temperature", "top_p", "top_k", "min_p", "seed", "max_output_tokens"}) {
    if (!all.is_object() || !number(name)) {
      return base::DataLoss("the sampling of a turn lacks '{}'", name);
    }
  }
  SamplingRecord record;
  record.sampling.temperature = all["temperature"].get<double>();
  record.sampling.top_p = all["top_p"].get<double>();
  record.sampling.top_k = all["top_k"].get<int32_t>();
  record.sampling.min_p = all["min_p"].get<double>();
  record.sampling.seed = all["seed"].get<uint64_t>();
  record.max_output_tokens = all["max_output_tokens"].get<int64_t>();
  record.logprobs = all.contains("logprobs") && all["logprobs"] == true;
  for (const json& stop : all.contains("stop") ? all["stop"] : json::array()) {
    if (stop.is_string()) record.stop.push_back(stop.get<std::string>());
  }
  return record;
}

}  // namespace kvasir::server

#include "router/server/option_table.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "router/names/nearest_name.h"
#include "router/server/address.h"

namespace kvasir::server {
namespace {

constexpr int64_t kBytesMax = int64_t{1} << 46;

constexpr OptionKey kKeys[] = {
    {"model", "GGUF file to serve", &Options::model},
    {"data", "folder of the store", &Options::data},
    {"listen", "HOST:PORT of the gRPC services", &Options::listen},
    {"metrics_listen", "HOST:PORT of the metrics page", &Options::metrics_listen},
    {"device", "where the model runs", &Options::device, 0, 0, "cpu"},
    {"role", "part of a deployment", &Options::role, 0, 0, "all"},
    {"threads", "threads that compute; 0: one per core", &Options::threads, 0, 256},
    {"context_tokens", "most tokens of a sequence; 0: what the model allows",
     &Options::context_tokens, 0, 1 << 20},
    {"request_bytes_max", "largest request", &Options::request_bytes_max, 64 << 10, 64 << 20},
    {"streams_per_connection_max", "calls at once on one connection",
     &Options::streams_per_connection_max, 1, 10'000},
    {"stream_buffer_events_max", "events kept for a slow reader",
     &Options::stream_buffer_events_max, 16, 65'536},
    {"slow_reader_s_max", "seconds after which a reader that takes nothing is cancelled",
     &Options::slow_reader_s_max, 1, 3600},
    {"reply_grace_s", "seconds for which a lost stream with a request_id goes on",
     &Options::reply_grace_s, 0, 3600},
    {"running_turns_max", "turns at once", &Options::running_turns_max, 1, 1024},
    {"queued_turns_max", "turns that wait", &Options::queued_turns_max, 0, 65'536},
    {"handler_threads", "requests that wait for the disk at once", &Options::handler_threads, 1,
     256},
    {"kv_bytes_max", "bytes of key-value pages of running sequences", &Options::kv_bytes_max,
     1 << 20, kBytesMax},
    {"state_cache_bytes_max", "bytes of stored states kept in RAM", &Options::state_cache_bytes_max,
     0, kBytesMax},
    {"mounts_max", "memories in front of a session", &Options::mounts_max, 0, 64},
    {"mount_slots_max", "slots of all mounted memories", &Options::mount_slots_max, 0, 1 << 20},
    {"mounts_per_turn_max", "of them, new in one turn", &Options::mounts_per_turn_max, 0, 64},
    {"mount_slack_tokens", "positions in front of a session kept for later mounts",
     &Options::mount_slack_tokens, 0, 1 << 20},
    {"inline_build_tokens_max", "a state of so few tokens is built before the turn that wants it",
     &Options::inline_build_tokens_max, 0, 65'536},
    {"session_idle_close_s", "seconds after which the memory of an idle session is made",
     &Options::session_idle_close_s, 1, 2'592'000},
    {"drain_s", "seconds that running turns get when the server stops", &Options::drain_s, 0, 3600},
};

constexpr size_t kTextBytesMax = 4096;

bool IsChoice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    const size_t end = std::min(choices.find(' '), choices.size());
    if (choices.substr(0, end) == value) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

}  // namespace

std::span<const OptionKey> OptionKeys() { return kKeys; }

std::string FlagOf(const OptionKey& key) {
  std::string flag = fmt::format("--{}", key.name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

base::Status SetNumber(const OptionKey& key, int64_t value, Options* options) {
  const auto* member = std::get_if<int64_t Options::*>(&key.member);
  if (member == nullptr) return base::InvalidArgument("{} is a text, {} a number", key.name, value);
  if (value < key.min || value > key.max) {
    return base::InvalidArgument("{} is {}, allowed are {} to {}", key.name, value, key.min,
                                 key.max);
  }
  options->** member = value;
  return base::OkStatus();
}

base::Status SetText(const OptionKey& key, std::string_view value, Options* options) {
  const auto* member = std::get_if<std::string Options::*>(&key.member);
  if (member == nullptr)
    return base::InvalidArgument("{} is a number, '{}' a text", key.name, value);
  if (value.size() > kTextBytesMax || value.find('\0') != std::string_view::npos) {
    return base::InvalidArgument("{} has {} bytes, at most {} without NUL are allowed", key.name,
                                 value.size(), kTextBytesMax);
  }
  if (!key.choices.empty() && !IsChoice(key.choices, value)) {
    return base::InvalidArgument("{} is '{}', this build knows: {}", key.name, value, key.choices);
  }
  options->** member = value;
  return base::OkStatus();
}

base::Status SetFromFlag(const OptionKey& key, std::string_view value, Options* options) {
  if (std::holds_alternative<std::string Options::*>(key.member)) {
    return SetText(key, value, options);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    return base::InvalidArgument("{} is '{}', allowed are whole numbers from {} to {}", key.name,
                                 value, key.min, key.max);
  }
  return SetNumber(key, number, options);
}

base::Status UnknownKey(std::string_view name, std::string_view where) {
  std::vector<std::string_view> names;
  for (const OptionKey& key : kKeys) names.push_back(key.name);
  const std::string near = names::NearestName(name, names);
  if (near.empty()) return base::InvalidArgument("unknown key '{}' in {}", name, where);
  return base::InvalidArgument("unknown key '{}' in {}; did you mean '{}'?", name, where, near);
}

base::Status CheckOptions(const Options& options) {
  if (options.model.empty()) return base::InvalidArgument("no model: give --model FILE.gguf");
  if (options.data.empty()) return base::InvalidArgument("no data folder: give --data DIR");
  const auto listen = ParseAddress(options.listen);
  if (!listen.ok()) return base::Annotate(listen.status(), "listen");
  if (!IsLoopback(*listen)) {
    return base::InvalidArgument(
        "listen is {}: without credentials the server listens on the loopback only, such as "
        "127.0.0.1:{}",
        options.listen, listen->port);
  }
  if (options.metrics_listen.empty()) return base::OkStatus();
  return base::Annotate(ParseAddress(options.metrics_listen).status(), "metrics_listen");
}

}  // namespace kvasir::server

#include "router/client/render.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace kvasir::client {
namespace {

constexpr size_t kTitleWidth = 60;

// An enum value's name without its prefix, in lower case.
std::string Short(const std::string& name, size_t prefix_bytes, char between) {
  std::string text = name.substr(std::min(prefix_bytes, name.size()));
  for (char& c : text) c = c == '_' ? between : static_cast<char>(std::tolower(c));
  return text;
}

std::string StateText(v1::Memory::State state) {
  return Short(v1::Memory::State_Name(state), sizeof("STATE_") - 1, ' ');
}

std::string TierText(v1::Tier tier) { return Short(v1::Tier_Name(tier), sizeof("TIER_") - 1, ' '); }

}  // namespace

std::string BytesText(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}Z", fmt::gmtime(static_cast<time_t>(time.seconds())));
}

std::string ModeText(v1::MemoryMode mode) {
  return Short(v1::MemoryMode_Name(mode), sizeof("MEMORY_MODE_") - 1, '_');
}

std::string ReasonText(v1::MissReason reason) {
  return Short(v1::MissReason_Name(reason), sizeof("MISS_REASON_") - 1, ' ');
}

std::string FinishText(v1::FinishReason reason) {
  return Short(v1::FinishReason_Name(reason), sizeof("FINISH_REASON_") - 1, ' ');
}

std::string LastPart(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::string Render(const Output& output, const v1::Session& session) {
  const bool open = session.state() == v1::Session::STATE_OPEN;
  return RenderFields(output, {{"name", session.name()},
                               {"title", OneLine(session.display_name(), kTitleWidth)},
                               {"state", open ? "open" : "closed"},
                               {"memory mode", ModeText(session.memory_mode())},
                               {"model", session.model()},
                               {"turns", fmt::format("{}", session.turn_count())},
                               {"memory", session.memory().empty() ? "-" : session.memory()},
                               {"created", TimeText(session.create_time())},
                               {"closed", TimeText(session.close_time())}});
}

std::string Render(const Output& output, const v1::Memory& memory) {
  std::string text =
      RenderFields(output, {{"name", memory.name()},
                            {"title", OneLine(memory.title(), kTitleWidth)},
                            {"state", StateText(memory.state())},
                            {"tokens", fmt::format("{}", memory.kv().logical_tokens())},
                            {"slots", fmt::format("{}", memory.kv().slots())},
                            {"stored", memory.has_kv() ? BytesText(memory.kv().bytes()) : "-"},
                            {"turns", fmt::format("{}", memory.source_turns_size())},
                            {"used", fmt::format("{} times, last {}", memory.use_count(),
                                                 TimeText(memory.last_use_time()))},
                            {"created", TimeText(memory.create_time())}});
  for (const std::string& turn : memory.source_turns()) {
    text += output.Paint(Tint::kDim, "from  ") + turn + "\n";
  }
  if (!memory.source_text().empty()) text += "\n" + Printable(memory.source_text()) + "\n";
  return text;
}

std::string Render(const Output& output, const v1::Turn& turn) {
  std::string text = output.Paint(Tint::kBold, fmt::format("{} {}", LastPart(turn.name()), "> "));
  const bool running = turn.state() == v1::Turn::STATE_RUNNING;
  // A turn whose text went with its memory has no reason why it ended either; its number stays.
  if (!running && turn.finish_reason() == v1::FINISH_REASON_UNSPECIFIED && turn.message().empty()) {
    return text + output.Paint(Tint::kDim, "(deleted)") + "\n";
  }
  text += Printable(turn.message()) + "\n" + Printable(turn.text()) + "\n";
  const std::string end = running ? "running" : FinishText(turn.finish_reason());
  return text + output.Paint(Tint::kDim, "[" + end + "]") + "\n";
}

std::string Render(const Output& output, const v1::Erasure& erasure) {
  const bool done = erasure.state() == v1::Erasure::STATE_DONE;
  std::string text = RenderFields(output, {{"name", erasure.name()},
                                           {"state", done ? "done" : "running"},
                                           {"accepted", TimeText(erasure.create_time())}});
  for (const auto& stage : erasure.stages()) {
    const std::string kind =
        Short(v1::ErasureStage::Kind_Name(stage.kind()), sizeof("KIND_") - 1, ' ');
    text += fmt::format("{}  {}\n", TimeText(stage.time()), kind);
  }
  for (const auto& removed : erasure.removed()) {
    text += fmt::format("{} {} removed\n", removed.count(), removed.kind());
  }
  return text;
}

std::string RenderStats(const Output& output, const v1::Stats& stats) {
  const auto number = [](int64_t value) { return fmt::format("{}", value); };
  return RenderFields(
      output, {{"users", number(stats.users())},
               {"sessions", number(stats.sessions())},
               {"memories", number(stats.memories())},
               {"turns", fmt::format("{} running, {} waiting, {} finished", stats.running_turns(),
                                     stats.queued_turns(), stats.finished_turns())},
               {"prompt tokens", fmt::format("{} computed, {} from sessions, {} from memories",
                                             stats.computed_tokens(), stats.session_cached_tokens(),
                                             stats.memory_tokens())},
               {"output tokens", number(stats.output_tokens())},
               {"states", fmt::format("{} in RAM, {} on disk", BytesText(stats.state_ram_bytes()),
                                      BytesText(stats.state_disk_bytes()))},
               {"pages", fmt::format("{} of {}", BytesText(stats.kv_used_bytes()),
                                     BytesText(stats.kv_total_bytes()))},
               {"jobs waiting", number(stats.pending_jobs())}});
}

std::string Render(const Output& output, const v1::Route& route) {
  if (route.mounts().empty() && route.unused().empty()) {
    return fmt::format("No memory was considered (mode {}).\n", ModeText(route.memory_mode()));
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& mount : route.mounts()) {
    rows.push_back(
        {LastPart(mount.memory()), fmt::format("{:.2f}", mount.score()),
         fmt::format("{}", mount.logical_tokens()), fmt::format("{}", mount.slots()),
         fmt::format("{:.1f}", mount.restore_ms()),
         mount.kept() ? "used, from an earlier turn" : "used, from " + TierText(mount.tier()),
         OneLine(mount.title(), kTitleWidth)});
  }
  for (const auto& other : route.unused()) {
    const std::string detail = other.detail().empty() ? "" : " (" + other.detail() + ")";
    rows.push_back({LastPart(other.memory()), fmt::format("{:.2f}", other.score()), "-", "-", "-",
                    OneLine(ReasonText(other.reason()) + detail, kTitleWidth),
                    OneLine(other.title(), kTitleWidth)});
  }
  return RenderTable(output,
                     {{"memory"},
                      {"score", true},
                      {"tokens", true},
                      {"slots", true},
                      {"ms", true},
                      {"why"},
                      {"title"}},
                     rows);
}

std::string UsageLine(const v1::Route& route, const v1::Usage& usage) {
  std::string text;
  const int memories = route.mounts_size();
  int64_t tokens = 0;  // as in the route; those of the usage have the base, too
  for (const auto& mount : route.mounts()) tokens += mount.logical_tokens();
  if (memories > 0) {
    text = fmt::format("{} {}, {} tokens restored in {:.1f} ms · ", memories,
                       memories == 1 ? "memory" : "memories", tokens, usage.restore_ms());
  }
  return text + fmt::format("{} tokens computed · {} tokens, {:.2f} s to the first",
                            usage.computed_tokens(), usage.output_tokens(), usage.ttft_ms() / 1000);
}

}  // namespace kvasir::client

#include "router/client/repl.h"

#include <charconv>

#include "router/client/progress.h"
#include "router/client/render.h"

namespace kvasir::client {

base::Status Repl::Greet() {
  KVASIR_ASSIGN_OR_RETURN(
      const auto info,
      client_.connection.Call(client_.connection.admin(), &v1::AdminService::Stub::GetServerInfo,
                              v1::GetServerInfoRequest()));
  if (!client_.interactive) return base::OkStatus();
  client_.output.notes() << client_.output.Paint(
                                Tint::kDim, fmt::format("{}, user {}. /help lists the commands; "
                                                        "Ctrl-D leaves and remembers.",
                                                        LastPart(info.model()), client_.user))
                         << "\n";
  return base::OkStatus();
}

base::Status Repl::Run() {
  KVASIR_RETURN_IF_ERROR(Greet());
  while (true) {
    const bool incognito = conversation_.options().memory_mode == v1::MEMORY_MODE_INCOGNITO;
    const auto line = client_.input.Read(incognito ? "(incognito) > " : "> ");
    if (client_.interrupt != nullptr) client_.interrupt->Take();
    if (!line) break;
    if (line->empty()) continue;
    if ((*line)[0] == '/') {
      if (!Do(*line)) break;
    } else {
      Say(*line);
    }
  }
  Tell(NewSession());
  return base::OkStatus();
}

void Repl::Say(const std::string& message) {
  Output& output = client_.output;
  Progress progress(output, "thinking");
  bool begun = false;
  const auto reply = conversation_.Send(message, [&](std::string_view text) {
    if (!begun) progress.Stop();
    begun = true;
    output.out() << Printable(text) << std::flush;
  });
  progress.Stop();
  if (begun) output.out() << "\n";
  if (!reply.ok()) return Tell(reply.status());
  last_ = *reply;
  std::string line = UsageLine(reply->route, reply->usage);
  if (reply->finish_reason != v1::FINISH_REASON_STOP) {
    line = fmt::format("[{}] {}", FinishText(reply->finish_reason), line);
  }
  output.notes() << output.Paint(Tint::kDim, line) << "\n";
}

void Repl::Tell(const base::Status& status) {
  if (status.ok()) return;
  const std::string text(base::ToStd(status.message()));
  client_.output.notes() << client_.output.Paint(Tint::kRed, Printable(text)) << "\n";
}

bool Repl::Do(const std::string& line) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string name = line.substr(0, space);
  const std::string argument = space < line.size() ? line.substr(space + 1) : "";
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/memory") {
    Tell(ListMemories());
  } else if (name == "/why") {
    Tell(Why());
  } else if (name == "/forget") {
    Tell(Forget(argument));
  } else if (name == "/incognito") {
    Tell(Incognito());
  } else if (name == "/new") {
    Tell(NewSession());
  } else if (name == "/session") {
    Tell(ShowSession());
  } else if (name == "/stats") {
    Tell(ShowStats());
  } else if (name == "/help") {
    Tell(Help());
  } else {
    Tell(base::InvalidArgument("no command {}; /help lists them", name));
  }
  return true;
}

base::Status Repl::ListMemories() {
  v1::ListMemoriesRequest request;
  request.set_parent(client_.UserName());
  std::vector<std::vector<std::string>> rows;
  memories_.clear();
  KVASIR_RETURN_IF_ERROR(ForEachPage(
      client_.connection, client_.connection.memories(), &v1::MemoryService::Stub::ListMemories,
      request, [&](v1::ListMemoriesResponse& page) {
        for (const auto& memory : page.memories()) {
          memories_.push_back(memory.name());
          rows.push_back({fmt::format("{}", memories_.size()),
                          fmt::format("{}", memory.kv().logical_tokens()),
                          TimeText(memory.create_time()), OneLine(memory.title(), 60)});
        }
      }));
  if (rows.empty()) {
    client_.output.out() << "Nothing is remembered yet; a session is when it ends (/new).\n";
    return base::OkStatus();
  }
  client_.output.out() << RenderTable(
      client_.output, {{"no", true}, {"tokens", true}, {"created"}, {"title"}}, rows);
  return base::OkStatus();
}

base::Status Repl::Why() {
  if (!last_) return base::FailedPrecondition("nothing was said yet");
  client_.output.out() << Render(client_.output, last_->route);
  return base::OkStatus();
}

base::Status Repl::Forget(const std::string& which) {
  if (which.empty()) {
    return base::InvalidArgument(
        "say which: /forget NUMBER as /memory lists it, or /forget MEMORY");
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), number);
  const bool is_number = error == std::errc() && end == which.data() + which.size();
  v1::DeleteMemoryRequest request;
  request.set_name(client_.MemoryName(which));
  if (is_number && number >= 1 && number <= memories_.size()) {
    request.set_name(memories_[number - 1]);
  } else if (is_number && which.size() < 4) {
    return base::InvalidArgument("/memory listed {} memories, {} is none of them", memories_.size(),
                                 number);
  }
  v1::GetMemoryRequest get;  // what is deleted has no title any more
  get.set_name(request.name());
  KVASIR_ASSIGN_OR_RETURN(const auto memory,
                          client_.connection.Call(client_.connection.memories(),
                                                  &v1::MemoryService::Stub::GetMemory, get));
  KVASIR_RETURN_IF_ERROR(
      client_.connection
          .Call(client_.connection.memories(), &v1::MemoryService::Stub::DeleteMemory, request)
          .status());
  const std::string& title = memory.title().empty() ? memory.name() : memory.title();
  client_.output.out() << "Forgotten: " << OneLine(title, 60) << "\n";
  return base::OkStatus();
}

base::Status Repl::Incognito() {
  v1::MemoryMode& mode = conversation_.options().memory_mode;
  const bool on = mode != v1::MEMORY_MODE_INCOGNITO;
  mode = on ? v1::MEMORY_MODE_INCOGNITO : usual_mode_;
  client_.output.out()
      << (on ? "Incognito: no memory is read or made; the text goes when the session is closed.\n"
             : "Incognito is off.\n");
  return base::OkStatus();
}

base::Status Repl::NewSession() {
  KVASIR_ASSIGN_OR_RETURN(const std::string memory, conversation_.Close());
  if (!memory.empty() && client_.interactive) {
    client_.output.notes() << client_.output.Paint(Tint::kDim, "remembered as " + memory) << "\n";
  }
  return base::OkStatus();
}

base::Status Repl::ShowSession() {
  if (conversation_.session().empty()) {
    return base::FailedPrecondition("the session begins with your first message");
  }
  v1::GetSessionRequest request;
  request.set_name(conversation_.session());
  KVASIR_ASSIGN_OR_RETURN(const auto session,
                          client_.connection.Call(client_.connection.sessions(),
                                                  &v1::SessionService::Stub::GetSession, request));
  client_.output.out() << Render(client_.output, session);
  return base::OkStatus();
}

base::Status Repl::ShowStats() {
  if (last_) client_.output.out() << UsageLine(last_->route, last_->usage) << "\n";
  KVASIR_ASSIGN_OR_RETURN(
      const auto stats,
      client_.connection.Call(client_.connection.admin(), &v1::AdminService::Stub::GetStats,
                              v1::GetStatsRequest()));
  client_.output.out() << RenderStats(client_.output, stats);
  return base::OkStatus();
}

base::Status Repl::Help() {
  client_.output.out()
      << "/memory         what is remembered of you\n"
         "/why            which memories the last answer used, and why not others\n"
         "/forget WHICH   remove a memory: its number in /memory, or its name\n"
         "/incognito      on or off: turns that leave nothing behind\n"
         "/new            end this session, so that it is remembered; begin another\n"
         "/session        this session\n"
         "/stats          what the last answer cost; figures of the server\n"
         "/quit           leave (or Ctrl-D); Ctrl-C stops an answer\n";
  return base::OkStatus();
}

}  // namespace kvasir::client

// kvasir session list | show | close | delete

#include <memory>

#include "router/client/commands/commands.h"
#include "router/client/render.h"

namespace kvasir::client {
namespace {

base::Status ListSessions(Client& client) {
  v1::ListSessionsRequest request;
  request.set_parent(client.UserName());
  v1::ListSessionsResponse all;
  KVASIR_RETURN_IF_ERROR(ForEachPage(client.connection, client.connection.sessions(),
                                     &v1::SessionService::Stub::ListSessions, request,
                                     [&](auto& page) { all.MergeFrom(page); }));
  all.clear_next_page_token();
  if (client.output.json()) {
    client.output.out() << ToJson(all) << "\n";
    return base::OkStatus();
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& session : all.sessions()) {
    rows.push_back({LastPart(session.name()),
                    session.state() == v1::Session::STATE_OPEN ? "open" : "closed",
                    fmt::format("{}", session.turn_count()), ModeText(session.memory_mode()),
                    TimeText(session.create_time()), OneLine(session.display_name(), 40)});
  }
  client.output.out() << RenderTable(
      client.output, {{"session"}, {"state"}, {"turns", true}, {"mode"}, {"created"}, {"title"}},
      rows);
  return base::OkStatus();
}

// The session and its turns.
base::Status ShowSession(Client& client, const std::string& name) {
  v1::GetSessionRequest get;
  get.set_name(client.SessionName(name));
  KVASIR_ASSIGN_OR_RETURN(const auto session,
                          client.connection.Call(client.connection.sessions(),
                                                 &v1::SessionService::Stub::GetSession, get));
  v1::ListTurnsRequest list;
  list.set_parent(session.name());
  v1::ListTurnsResponse turns;
  KVASIR_RETURN_IF_ERROR(ForEachPage(client.connection, client.connection.sessions(),
                                     &v1::SessionService::Stub::ListTurns, list,
                                     [&](auto& page) { turns.MergeFrom(page); }));
  turns.clear_next_page_token();
  if (client.output.json()) {
    client.output.out() << "{\"session\":" << ToJson(session)
                        << ",\"turns\":" << ToJson(turns).substr(sizeof("{\"turns\":") - 1) << "\n";
    return base::OkStatus();
  }
  client.output.out() << Render(client.output, session);
  for (const auto& turn : turns.turns()) {
    client.output.out() << "\n" << Render(client.output, turn);
  }
  return base::OkStatus();
}

base::Status Close(Client& client, const std::string& name) {
  KVASIR_ASSIGN_OR_RETURN(const auto done, CloseSession(client, client.SessionName(name)));
  if (client.output.json()) {
    client.output.out() << ToJson(done) << "\n";
    return base::OkStatus();
  }
  const std::string memory = MemoryOf(done);
  client.output.out() << (memory.empty() ? "Closed; it leaves no memory."
                                         : "Remembered as " + memory)
                      << "\n";
  return base::OkStatus();
}

base::Status DeleteSession(Client& client, const std::string& name) {
  v1::DeleteSessionRequest request;
  request.set_name(client.SessionName(name));
  KVASIR_ASSIGN_OR_RETURN(
      const auto empty, client.connection.Call(client.connection.sessions(),
                                               &v1::SessionService::Stub::DeleteSession, request));
  if (client.output.json()) {
    client.output.out() << ToJson(empty) << "\n";
  } else {
    client.output.out() << "Deleted " << request.name() << "\n";
  }
  return base::OkStatus();
}

}  // namespace

void AddSessionCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = app.add_subcommand("session", "list, show, close and delete sessions");
  group->require_subcommand(1);
  group->add_subcommand("list", "sessions of the user")->callback([&chosen] {
    chosen = ListSessions;
  });
  const auto add = [&](const char* name, const char* help,
                       base::Status (*run)(Client&, const std::string&)) {
    const auto session = std::make_shared<std::string>();
    CLI::App* command = group->add_subcommand(name, help);
    command->add_option("SESSION", *session, "id or full name")->required();
    command->callback([&chosen, session, run] {
      chosen = [session, run](Client& client) { return run(client, *session); };
    });
  };
  add("show", "a session with its turns", ShowSession);
  add("close", "close a session and make its memory", Close);
  add("delete", "remove a session, its turns and its memory", DeleteSession);
}

}  // namespace kvasir::client

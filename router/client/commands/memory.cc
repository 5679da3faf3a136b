// kvasir memory list | show | search | delete | why

#include <memory>

#include "router/client/commands/commands.h"
#include "router/client/render.h"

namespace kvasir::client {
namespace {

std::vector<std::string> MemoryRow(const v1::Memory& memory) {
  return {LastPart(memory.name()),
          fmt::format("{}", memory.kv().logical_tokens()),
          memory.has_kv() ? BytesText(memory.kv().bytes()) : "-",
          fmt::format("{}", memory.use_count()),
          TimeText(memory.create_time()),
          OneLine(memory.title(), 60)};
}

base::Status ListMemories(Client& client) {
  v1::ListMemoriesRequest request;
  request.set_parent(client.UserName());
  v1::ListMemoriesResponse all;
  KVASIR_RETURN_IF_ERROR(ForEachPage(client.connection, client.connection.memories(),
                                     &v1::MemoryService::Stub::ListMemories, request,
                                     [&](auto& page) { all.MergeFrom(page); }));
  all.clear_next_page_token();
  if (client.output.json()) {
    client.output.out() << ToJson(all) << "\n";
    return base::OkStatus();
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& memory : all.memories()) rows.push_back(MemoryRow(memory));
  client.output.out() << RenderTable(
      client.output,
      {{"memory"}, {"tokens", true}, {"stored", true}, {"used", true}, {"created"}, {"title"}},
      rows);
  return base::OkStatus();
}

base::Status ShowMemory(Client& client, const std::string& name) {
  v1::GetMemoryRequest request;
  request.set_name(client.MemoryName(name));
  request.set_view(v1::MEMORY_VIEW_FULL);
  KVASIR_ASSIGN_OR_RETURN(const auto memory,
                          client.connection.Call(client.connection.memories(),
                                                 &v1::MemoryService::Stub::GetMemory, request));
  client.output.out() << (client.output.json() ? ToJson(memory) + "\n"
                                               : Render(client.output, memory));
  return base::OkStatus();
}

base::Status SearchMemories(Client& client, const std::string& query, int top_k) {
  v1::SearchMemoriesRequest request;
  request.set_parent(client.UserName());
  request.set_query(query);
  request.set_top_k(top_k);
  KVASIR_ASSIGN_OR_RETURN(
      const auto found, client.connection.Call(client.connection.memories(),
                                               &v1::MemoryService::Stub::SearchMemories, request));
  if (client.output.json()) {
    client.output.out() << ToJson(found) << "\n";
    return base::OkStatus();
  }
  if (found.results().empty()) {
    client.output.out() << "No memory fits.\n";
    return base::OkStatus();
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& result : found.results()) {
    rows.push_back(MemoryRow(result.memory()));
    rows.back().insert(rows.back().begin() + 1, fmt::format("{:.2f}", result.score()));
  }
  client.output.out() << RenderTable(client.output,
                                     {{"memory"},
                                      {"score", true},
                                      {"tokens", true},
                                      {"stored", true},
                                      {"used", true},
                                      {"created"},
                                      {"title"}},
                                     rows);
  return base::OkStatus();
}

base::Status DeleteMemory(Client& client, const std::string& name) {
  v1::DeleteMemoryRequest request;
  request.set_name(client.MemoryName(name));
  KVASIR_ASSIGN_OR_RETURN(const auto memory,
                          client.connection.Call(client.connection.memories(),
                                                 &v1::MemoryService::Stub::DeleteMemory, request));
  client.output.out() << (client.output.json() ? ToJson(memory) : "Deleted " + request.name())
                      << "\n";
  return base::OkStatus();
}

base::Status ExplainTurn(Client& client, const std::string& turn) {
  v1::ExplainRouteRequest request;
  KVASIR_ASSIGN_OR_RETURN(*request.mutable_turn(), client.TurnName(turn));
  KVASIR_ASSIGN_OR_RETURN(const auto answer,
                          client.connection.Call(client.connection.memories(),
                                                 &v1::MemoryService::Stub::ExplainRoute, request));
  client.output.out() << (client.output.json() ? ToJson(answer) + "\n"
                                               : Render(client.output, answer.route()));
  return base::OkStatus();
}

}  // namespace

void AddMemoryCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = app.add_subcommand("memory", "list, show, search, delete and explain memories");
  group->require_subcommand(1);
  group->add_subcommand("list", "memories of the user")->callback([&chosen] {
    chosen = ListMemories;
  });
  const auto add = [&](const char* name, const char* help, const char* argument, const char* what,
                       base::Status (*run)(Client&, const std::string&)) {
    const auto text = std::make_shared<std::string>();
    CLI::App* command = group->add_subcommand(name, help);
    command->add_option(argument, *text, what)->required();
    command->callback([&chosen, text, run] {
      chosen = [text, run](Client& client) { return run(client, *text); };
    });
  };
  add("show", "a memory with its text", "MEMORY", "id or full name", ShowMemory);
  add("delete", "remove a memory and the text of its session's turns", "MEMORY", "id or full name",
      DeleteMemory);
  add("why", "which memories a turn used, and why not the others", "TURN", "SESSION/N or full name",
      ExplainTurn);

  const auto query = std::make_shared<std::string>();
  const auto top_k = std::make_shared<int>(10);
  CLI::App* search = group->add_subcommand("search", "memories that fit some words");
  search->add_option("QUERY", *query, "words to look for")->required();
  search->add_option("--top-k", *top_k, "most results, 1 to 100")->capture_default_str();
  search->callback([&chosen, query, top_k] {
    chosen = [query, top_k](Client& client) { return SearchMemories(client, *query, *top_k); };
  });
}

}  // namespace kvasir::client

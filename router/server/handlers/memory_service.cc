#include "router/server/handlers/memory_service.h"

#include <map>
#include <utility>

#include "router/server/chat_turns.h"
#include "router/server/handlers/pages.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/invalid_field.h"
#include "router/server/resource_names.h"

namespace kvasir::server {
namespace {

using service::MemoryRecord;

constexpr int64_t kTopKDefault = 10;
constexpr int64_t kMemoriesPage = 1000;

// Names of the sessions of `user`, by id. Errors: those of Sessions::List.
using SessionNames = std::map<store::RecordId, std::string>;
base::StatusOr<SessionNames> NamesOf(const Served& served, const service::UserRef& user) {
  SessionNames names;
  service::ListPage page{.size = kMemoriesPage, .after = {}};
  do {
    KVASIR_ASSIGN_OR_RETURN(const auto listed, served.tier->sessions().List(user, page));
    for (const service::SessionRecord& session : listed.items) names[session.id] = session.name;
    page.after = listed.next;
  } while (!page.after.empty());
  return names;
}

std::string NameIn(const SessionNames& names, const store::RecordId& session) {
  const auto found = names.find(session);
  return found == names.end() ? "" : found->second;
}

base::StatusOr<std::string> SourceText(const Served& served, const service::UserRef& user,
                                       const MemoryRecord& memory) {
  KVASIR_ASSIGN_OR_RETURN(const auto turns, served.tier->memories().SourceTurns(user, memory));
  std::string text;
  for (const service::TurnRecord& turn : turns) {
    text += fmt::format("user: {}\nassistant: {}\n", turn.user_text, turn.reply_text);
  }
  return text;
}

base::StatusOr<v1::Memory> Message(const Served& served, const service::UserRef& user,
                                   const SessionNames& names, const MemoryRecord& memory,
                                   bool full) {
  v1::Memory message = ToProto(user.user, NameIn(names, memory.session), memory);
  if (full) {
    KVASIR_ASSIGN_OR_RETURN(*message.mutable_source_text(), SourceText(served, user, memory));
  }
  return message;
}

base::Status Explain(const Served& served, const v1::ExplainRouteRequest& request,
                     v1::ExplainRouteResponse* response) {
  const bool of_turn = !request.turn().empty();
  if (of_turn && (!request.session().empty() || !request.message().empty())) {
    return InvalidField("turn", "stands alone: session and message must be empty");
  }
  if (of_turn) {
    KVASIR_ASSIGN_OR_RETURN(const TurnName name, ParseTurnName(request.turn(), "turn"));
    const service::UserRef user{kTenant, name.user};
    KVASIR_ASSIGN_OR_RETURN(const service::TurnRecord turn,
                            served.tier->sessions().GetTurn(user, name.session, name.turn));
    RouteInfo route;
    if (!turn.route_json.empty()) {
      KVASIR_ASSIGN_OR_RETURN(route, RouteFromJson(turn.route_json));
    }
    FillTitles(*served.tier, user, route);
    *response->mutable_route() = ToProto(name.user, route);
    return base::OkStatus();
  }
  KVASIR_ASSIGN_OR_RETURN(const SessionName name, ParseSessionName(request.session(), "session"));
  if (request.message().empty()) return InvalidField("message", "is empty");
  KVASIR_ASSIGN_OR_RETURN(
      const RouteInfo route,
      served.turns->Explain({kTenant, name.user}, name.session, request.message()));
  *response->mutable_route() = ToProto(name.user, route);
  return base::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* MemoryHandlers::GetMemory(grpc::CallbackServerContext* rpc,
                                                    const v1::GetMemoryRequest* request,
                                                    v1::Memory* response) {
  return context_.Run(
      rpc, "MemoryService/GetMemory", HandlerContext::Effect::kReads, request,
      [request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const MemoryName name, ParseMemoryName(request->name(), "name"));
        const service::UserRef user{kTenant, name.user};
        KVASIR_ASSIGN_OR_RETURN(const MemoryRecord memory,
                                served.tier->memories().Get(user, name.memory));
        KVASIR_ASSIGN_OR_RETURN(const SessionNames names, NamesOf(served, user));
        KVASIR_ASSIGN_OR_RETURN(*response, Message(served, user, names, memory,
                                                   request->view() != v1::MEMORY_VIEW_BASIC));
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* MemoryHandlers::ListMemories(grpc::CallbackServerContext* rpc,
                                                       const v1::ListMemoriesRequest* request,
                                                       v1::ListMemoriesResponse* response) {
  return context_.Run(
      rpc, "MemoryService/ListMemories", HandlerContext::Effect::kReads, request,
      [this, request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const UserName name, ParseUserName(request->parent(), "parent"));
        KVASIR_ASSIGN_OR_RETURN(const service::ListPage page,
                                PageOf(context_.page_tokens(), *request));
        const service::UserRef user{kTenant, name.user};
        KVASIR_ASSIGN_OR_RETURN(const auto listed, served.tier->memories().List(user, page));
        KVASIR_ASSIGN_OR_RETURN(const SessionNames names, NamesOf(served, user));
        for (const MemoryRecord& memory : listed.items) {
          KVASIR_ASSIGN_OR_RETURN(
              *response->add_memories(),
              Message(served, user, names, memory, request->view() == v1::MEMORY_VIEW_FULL));
        }
        response->set_next_page_token(NextToken(context_.page_tokens(), *request, listed.next));
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* MemoryHandlers::SearchMemories(grpc::CallbackServerContext* rpc,
                                                         const v1::SearchMemoriesRequest* request,
                                                         v1::SearchMemoriesResponse* response) {
  return context_.Run(
      rpc, "MemoryService/SearchMemories", HandlerContext::Effect::kReads, request,
      [request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const UserName name, ParseUserName(request->parent(), "parent"));
        const service::UserRef user{kTenant, name.user};
        const int64_t top_k = request->top_k() > 0 ? request->top_k() : kTopKDefault;
        KVASIR_ASSIGN_OR_RETURN(const auto found,
                                served.tier->memories().Search(user, request->query(), top_k));
        KVASIR_ASSIGN_OR_RETURN(const SessionNames names, NamesOf(served, user));
        for (const service::Candidate& candidate : found) {
          const std::string session = NameIn(names, candidate.memory.session);
          v1::SearchResult* result = response->add_results();
          *result->mutable_memory() = ToProto(name.user, session, candidate.memory);
          result->set_score(candidate.lexical_score);
          if (candidate.best_turn > 0 && !session.empty()) {
            result->set_turn(Format(TurnName{name.user, session, candidate.best_turn}));
          }
        }
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* MemoryHandlers::DeleteMemory(grpc::CallbackServerContext* rpc,
                                                       const v1::DeleteMemoryRequest* request,
                                                       v1::Memory* response) {
  return context_.Run(rpc, "MemoryService/DeleteMemory", HandlerContext::Effect::kChanges, request,
                      [this, request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const MemoryName name,
                                                ParseMemoryName(request->name(), "name"));
                        const service::UserRef user{kTenant, name.user};
                        KVASIR_ASSIGN_OR_RETURN(MemoryRecord memory,
                                                served.tier->memories().Get(user, name.memory));
                        KVASIR_ASSIGN_OR_RETURN(const SessionNames names, NamesOf(served, user));
                        KVASIR_RETURN_IF_ERROR(served.tier->memories().Delete(user, name.memory));
                        memory.state = MemoryRecord::State::kDeleted;
                        memory.delete_us = context_.clock().WallMicros();
                        memory.parts.clear();
                        memory.title.clear();
                        *response = ToProto(name.user, NameIn(names, memory.session), memory);
                        return base::OkStatus();
                      });
}

grpc::ServerUnaryReactor* MemoryHandlers::ExplainRoute(grpc::CallbackServerContext* rpc,
                                                       const v1::ExplainRouteRequest* request,
                                                       v1::ExplainRouteResponse* response) {
  return context_.Run(
      rpc, "MemoryService/ExplainRoute", HandlerContext::Effect::kReads, request,
      [request, response](const Served& served) { return Explain(served, *request, response); });
}

}  // namespace kvasir::server

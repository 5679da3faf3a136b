#include "router/server/handlers/session_service.h"

#include <utility>

#include "router/server/chat_turns.h"
#include "router/server/handlers/chat_request.h"
#include "router/server/handlers/operations.h"
#include "router/server/handlers/pages.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/handlers/turn_messages.h"
#include "router/server/invalid_field.h"
#include "router/server/resource_names.h"
#include "router/server/validate.h"

namespace kvasir::server {
namespace {

constexpr char kCancelMethod[] = "SessionService/CancelTurn";
constexpr char kCompactMethod[] = "SessionService/CompactSession";

base::Status CheckModel(const std::string& wanted, const std::string& served) {
  if (wanted.empty()) return base::OkStatus();
  KVASIR_ASSIGN_OR_RETURN(const std::string model, ParseModelName(wanted, "session.model"));
  if (model == served) return base::OkStatus();
  return base::WithReason(
      base::FailedPrecondition("the model is {}, this server serves {}", model, served),
      "MODEL_MISMATCH");
}

base::Status ReadTurn(const Served& served, const TurnName& name, v1::Turn* response) {
  const service::UserRef user{kTenant, name.user};
  KVASIR_ASSIGN_OR_RETURN(service::TurnRecord turn,
                          served.tier->sessions().GetTurn(user, name.session, name.turn));
  *response = TurnMessage(served, user, name.session, std::move(turn));
  return base::OkStatus();
}

base::Status Busy(const SessionName& name) {
  return base::WithReason(base::Aborted("a turn of session {} is running", name.session),
                          "SESSION_BUSY");
}

}  // namespace

grpc::ServerUnaryReactor* SessionHandlers::CreateSession(grpc::CallbackServerContext* rpc,
                                                         const v1::CreateSessionRequest* request,
                                                         v1::Session* response) {
  return context_.Run(
      rpc, "SessionService/CreateSession", HandlerContext::Effect::kChanges, request,
      [request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const UserName name, ParseUserName(request->parent(), "parent"));
        if (!request->session_id().empty()) {
          KVASIR_RETURN_IF_ERROR(CheckId(request->session_id(), "session_id"));
        }
        KVASIR_RETURN_IF_ERROR(CheckModel(request->session().model(), served.host->name()));
        service::SessionRecord wanted;
        wanted.name = request->session_id();
        wanted.display_name = request->session().display_name();
        wanted.system_prompt = request->session().system_prompt();
        wanted.mode = FromProto(request->session().memory_mode()).value_or(wanted.mode);
        KVASIR_ASSIGN_OR_RETURN(const service::SessionRecord made,
                                served.tier->sessions().Create({kTenant, name.user}, wanted));
        *response = ToProto(name.user, served.host->name(), made);
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* SessionHandlers::GetSession(grpc::CallbackServerContext* rpc,
                                                      const v1::GetSessionRequest* request,
                                                      v1::Session* response) {
  return context_.Run(
      rpc, "SessionService/GetSession", HandlerContext::Effect::kReads, request,
      [request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const SessionName name, ParseSessionName(request->name(), "name"));
        KVASIR_ASSIGN_OR_RETURN(const service::SessionRecord session,
                                served.tier->sessions().Get({kTenant, name.user}, name.session));
        *response = ToProto(name.user, served.host->name(), session);
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* SessionHandlers::ListSessions(grpc::CallbackServerContext* rpc,
                                                        const v1::ListSessionsRequest* request,
                                                        v1::ListSessionsResponse* response) {
  return context_.Run(
      rpc, "SessionService/ListSessions", HandlerContext::Effect::kReads, request,
      [this, request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const UserName name, ParseUserName(request->parent(), "parent"));
        KVASIR_ASSIGN_OR_RETURN(const service::ListPage page,
                                PageOf(context_.page_tokens(), *request));
        KVASIR_ASSIGN_OR_RETURN(const auto listed,
                                served.tier->sessions().List({kTenant, name.user}, page));
        for (const service::SessionRecord& session : listed.items) {
          *response->add_sessions() = ToProto(name.user, served.host->name(), session);
        }
        response->set_next_page_token(NextToken(context_.page_tokens(), *request, listed.next));
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* SessionHandlers::DeleteSession(grpc::CallbackServerContext* rpc,
                                                         const v1::DeleteSessionRequest* request,
                                                         google::protobuf::Empty*) {
  return context_.Run(rpc, "SessionService/DeleteSession", HandlerContext::Effect::kChanges,
                      request, [request](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const SessionName name,
                                                ParseSessionName(request->name(), "name"));
                        return served.tier->sessions().Delete({kTenant, name.user}, name.session);
                      });
}

grpc::ServerWriteReactor<v1::ChatResponse>* SessionHandlers::Chat(grpc::CallbackServerContext* rpc,
                                                                  const v1::ChatRequest* request) {
  auto call = ToCall(*request, context_.entropy());
  if (!call.ok()) return ChatStreams::Refuse(context_, call.status());
  const auto served = context_.served();
  if (!served.ok()) return ChatStreams::Refuse(context_, served.status());
  auto turn = (*served)->turns->Start(*std::move(call));
  if (!turn.ok()) return ChatStreams::Refuse(context_, turn.status());
  return streams_.Open(context_, rpc, *(*served)->options, *std::move(turn),
                       request->resume_after_seq());
}

grpc::ServerUnaryReactor* SessionHandlers::CancelTurn(grpc::CallbackServerContext* rpc,
                                                      const v1::CancelTurnRequest* request,
                                                      v1::Turn* response) {
  grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
  base::Status status = ValidateRequest(*request);
  auto name = ParseTurnName(request->name(), "name");
  if (status.ok()) status = name.status();
  const auto served = context_.served();
  if (status.ok()) status = served.status();
  if (!status.ok()) {
    context_.Finish(reactor, kCancelMethod, status);
    return reactor;
  }
  const auto read = [this, reactor, response, name = *name, served = *served] {
    context_.Finish(reactor, kCancelMethod, ReadTurn(*served, name, response));
  };
  const auto turn = (*served)->turns->Running({kTenant, name->user}, name->session, name->turn);
  if (turn != nullptr) {
    turn->Cancel();
    turn->OnEnd([this, read] { context_.pool().Post(read); });
  } else if (!context_.pool().Offer(read)) {
    context_.Finish(
        reactor, kCancelMethod,
        base::WithReason(base::ResourceExhausted("too many requests wait"), "QUEUE_FULL"));
  }
  return reactor;
}

grpc::ServerUnaryReactor* SessionHandlers::GetTurn(grpc::CallbackServerContext* rpc,
                                                   const v1::GetTurnRequest* request,
                                                   v1::Turn* response) {
  return context_.Run(rpc, "SessionService/GetTurn", HandlerContext::Effect::kReads, request,
                      [request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const TurnName name,
                                                ParseTurnName(request->name(), "name"));
                        return ReadTurn(served, name, response);
                      });
}

grpc::ServerUnaryReactor* SessionHandlers::ListTurns(grpc::CallbackServerContext* rpc,
                                                     const v1::ListTurnsRequest* request,
                                                     v1::ListTurnsResponse* response) {
  return context_.Run(
      rpc, "SessionService/ListTurns", HandlerContext::Effect::kReads, request,
      [this, request, response](const Served& served) -> base::Status {
        KVASIR_ASSIGN_OR_RETURN(const SessionName name,
                                ParseSessionName(request->parent(), "parent"));
        KVASIR_ASSIGN_OR_RETURN(const service::ListPage page,
                                PageOf(context_.page_tokens(), *request));
        const service::UserRef user{kTenant, name.user};
        KVASIR_ASSIGN_OR_RETURN(auto listed,
                                served.tier->sessions().ListTurns(user, name.session, page));
        for (service::TurnRecord& turn : listed.items) {
          *response->add_turns() = TurnMessage(served, user, name.session, std::move(turn));
        }
        response->set_next_page_token(NextToken(context_.page_tokens(), *request, listed.next));
        return base::OkStatus();
      });
}

grpc::ServerUnaryReactor* SessionHandlers::CompactSession(grpc::CallbackServerContext* rpc,
                                                          const v1::CompactSessionRequest* request,
                                                          v1::Operation* response) {
  grpc::ServerUnaryReactor* const reactor = rpc->DefaultReactor();
  base::Status status = ValidateRequest(*request);
  auto name = ParseSessionName(request->name(), "name");
  if (status.ok()) status = name.status();
  const auto served = context_.served_for_change();
  if (status.ok()) status = served.status();
  if (status.ok()) {
    const auto close = [this, reactor, response, name = *name, served = *served] {
      const service::UserRef user{kTenant, name.user};
      const auto closed = served->tier->sessions().Close(user, name.session);
      if (closed.ok()) *response = OperationOfClose(*served->tier, user, *closed);
      context_.Finish(reactor, kCompactMethod, closed.status());
    };
    // The state of the last reply belongs to the memory: it is stored first.
    const bool waits = (*served)->sessions->WhenStored(
        {kTenant, name->user}, name->session, [this, close] { context_.pool().Post(close); });
    if (waits) return reactor;
    status = Busy(*name);
  }
  context_.Finish(reactor, kCompactMethod, status);
  return reactor;
}

}  // namespace kvasir::server

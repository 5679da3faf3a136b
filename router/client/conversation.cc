#include "router/client/conversation.h"

#include "router/client/render.h"

namespace kvasir::client {

base::Status Conversation::Create(const std::string& id) {
  v1::CreateSessionRequest request;
  request.set_parent(client_.UserName());
  request.set_session_id(id);
  // An incognito turn belongs to a session that would remember the others.
  if (options_.memory_mode != v1::MEMORY_MODE_INCOGNITO) {
    request.mutable_session()->set_memory_mode(options_.memory_mode);
  }
  KVASIR_ASSIGN_OR_RETURN(
      const auto session,
      client_.connection.Call(client_.connection.sessions(),
                              &v1::SessionService::Stub::CreateSession, request));
  session_ = session.name();
  made_ = true;
  return base::OkStatus();
}

base::Status Conversation::Open() {
  if (!session_.empty()) return base::OkStatus();
  if (wanted_.empty()) return Create("");
  v1::GetSessionRequest request;
  request.set_name(client_.SessionName(wanted_));
  const auto session = client_.connection.Call(client_.connection.sessions(),
                                               &v1::SessionService::Stub::GetSession, request);
  if (absl::IsNotFound(session.status())) {
    return Create(LastPart(wanted_));
  }
  KVASIR_RETURN_IF_ERROR(session.status());
  session_ = session->name();
  return base::OkStatus();
}

base::StatusOr<Reply> Conversation::Send(const std::string& message,
                                         const std::function<void(std::string_view)>& on_text) {
  KVASIR_RETURN_IF_ERROR(Open());
  v1::ChatRequest request;
  request.set_session(session_);
  request.set_message(message);
  request.set_memory_mode(options_.memory_mode);
  if (options_.temperature) request.set_temperature(*options_.temperature);
  if (options_.seed) request.set_seed(*options_.seed);
  if (options_.max_output_tokens) request.set_max_output_tokens(*options_.max_output_tokens);
  return RunTurn(client_.connection, request, on_text, client_.interrupt);
}

base::StatusOr<std::string> Conversation::Close() {
  const std::string session = std::exchange(session_, "");
  wanted_.clear();
  if (session.empty() || !std::exchange(made_, false)) return std::string();
  KVASIR_ASSIGN_OR_RETURN(const auto closed, CloseSession(client_, session));
  return MemoryOf(closed);
}

}  // namespace kvasir::client

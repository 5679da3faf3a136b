#include "router/client/client.h"

#include <algorithm>

#include "router/client/progress.h"

namespace kvasir::client {
namespace {

constexpr std::chrono::seconds kPollTime{2};  // one WaitOperation; between two an interrupt is seen

bool IsFullName(const std::string& name) { return name.starts_with("users/"); }

}  // namespace

std::string Client::SessionName(const std::string& name_or_id) const {
  return IsFullName(name_or_id) ? name_or_id : UserName() + "/sessions/" + name_or_id;
}

std::string Client::MemoryName(const std::string& name_or_id) const {
  return IsFullName(name_or_id) ? name_or_id : UserName() + "/memories/" + name_or_id;
}

base::StatusOr<std::string> Client::TurnName(const std::string& name) const {
  if (IsFullName(name)) return name;
  const size_t slash = std::min(name.rfind('/'), name.size());
  const std::string number = name.substr(std::min(slash + 1, name.size()));
  if (slash == 0 || number.empty() || number.find_first_not_of("0123456789") != number.npos) {
    return base::InvalidArgument("'{}' names no turn: say SESSION/N, such as {}/1", name,
                                 slash == 0 ? "s1" : name.substr(0, slash));
  }
  return SessionName(name.substr(0, slash)) + "/turns/" + name.substr(slash + 1);
}

base::StatusOr<v1::Operation> WaitUntilDone(Client& client, v1::Operation operation,
                                            const std::string& what) {
  Progress progress(client.output, what);
  while (!operation.done()) {
    if (client.interrupt != nullptr && client.interrupt->Take()) {
      return base::Cancelled("not waiting any more; {} goes on in the server", operation.name());
    }
    v1::WaitOperationRequest wait;
    wait.set_name(operation.name());
    wait.mutable_timeout()->set_seconds(kPollTime.count());
    KVASIR_ASSIGN_OR_RETURN(
        operation, client.connection.Call(client.connection.operations(),
                                          &v1::OperationService::Stub::WaitOperation, wait));
  }
  if (operation.has_error()) {
    return base::Status(static_cast<absl::StatusCode>(operation.error().code()),
                        operation.error().message());
  }
  return operation;
}

base::StatusOr<v1::Operation> CloseSession(Client& client, const std::string& session) {
  v1::CompactSessionRequest request;
  request.set_name(session);
  KVASIR_ASSIGN_OR_RETURN(
      auto operation, client.connection.Call(client.connection.sessions(),
                                             &v1::SessionService::Stub::CompactSession, request));
  return WaitUntilDone(client, std::move(operation), "making the memory");
}

std::string MemoryOf(const v1::Operation& closed) {
  v1::CompactSessionResponse response;
  return closed.response().UnpackTo(&response) ? response.memory() : "";
}

}  // namespace kvasir::client

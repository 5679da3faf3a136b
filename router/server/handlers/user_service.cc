#include "router/server/handlers/user_service.h"

#include "memory/service/memory_tier.h"
#include "router/server/handlers/operations.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/resource_names.h"

namespace kvasir::server {
namespace {

constexpr int64_t kSessionsPage = 1000;

base::Status ReadUser(const Served& served, const service::UserRef& user, v1::User* response) {
  KVASIR_ASSIGN_OR_RETURN(const service::UserRecord record, served.tier->GetUser(user));
  response->set_name(Format(UserName{user.user}));
  *response->mutable_create_time() = ToTimestamp(record.create_us);
  int32_t sessions = 0, memories = 0;
  int64_t bytes = 0;
  service::ListPage page{.size = kSessionsPage, .after = {}};
  do {
    KVASIR_ASSIGN_OR_RETURN(const auto listed, served.tier->sessions().List(user, page));
    sessions += static_cast<int32_t>(listed.items.size());
    page.after = listed.next;
  } while (!page.after.empty());
  do {
    KVASIR_ASSIGN_OR_RETURN(const auto listed, served.tier->memories().List(user, page));
    memories += static_cast<int32_t>(listed.items.size());
    for (const service::MemoryRecord& memory : listed.items) {
      for (const service::StatePart& part : memory.parts) bytes += part.bytes;
    }
    page.after = listed.next;
  } while (!page.after.empty());
  response->set_session_count(sessions);
  response->set_memory_count(memories);
  response->set_state_bytes(bytes);
  return base::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* UserHandlers::GetUser(grpc::CallbackServerContext* rpc,
                                                const v1::GetUserRequest* request,
                                                v1::User* response) {
  return context_.Run(rpc, "UserService/GetUser", HandlerContext::Effect::kReads, request,
                      [request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const UserName name,
                                                ParseUserName(request->name(), "name"));
                        return ReadUser(served, {kTenant, name.user}, response);
                      });
}

grpc::ServerUnaryReactor* UserHandlers::EraseUser(grpc::CallbackServerContext* rpc,
                                                  const v1::EraseUserRequest* request,
                                                  v1::Operation* response) {
  return context_.Run(rpc, "UserService/EraseUser", HandlerContext::Effect::kChanges, request,
                      [request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const UserName name,
                                                ParseUserName(request->name(), "name"));
                        KVASIR_ASSIGN_OR_RETURN(const service::ErasureRecord erasure,
                                                served.tier->EraseUser({kTenant, name.user}));
                        *response = OperationOfErasure(erasure);
                        return base::OkStatus();
                      });
}

grpc::ServerUnaryReactor* UserHandlers::GetErasure(grpc::CallbackServerContext* rpc,
                                                   const v1::GetErasureRequest* request,
                                                   v1::Erasure* response) {
  return context_.Run(rpc, "UserService/GetErasure", HandlerContext::Effect::kReads, request,
                      [request, response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(const std::string id,
                                                ParseErasureName(request->name(), "name"));
                        KVASIR_ASSIGN_OR_RETURN(const service::ErasureRecord erasure,
                                                served.tier->GetErasure(kTenant, id));
                        *response = ToProto(erasure);
                        return base::OkStatus();
                      });
}

}  // namespace kvasir::server

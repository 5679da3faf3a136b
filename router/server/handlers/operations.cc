#include "router/server/handlers/operations.h"

#include "kvasir/v1/erasure.pb.h"
#include "kvasir/v1/session.pb.h"
#include "kvasir/v1/user.pb.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/resource_names.h"
#include "router/server/status_to_grpc.h"

namespace kvasir::server {
namespace {

constexpr char kErasurePrefix[] = "erasure-";
constexpr char kClosePrefix[] = "close-";

}  // namespace

v1::Operation OperationOfClose(service::MemoryTier& tier, const service::UserRef& user,
                               const service::SessionRecord& session) {
  v1::Operation operation;
  operation.set_name(FormatOperation(kClosePrefix + tier.sessions().HandleOf(user, session.id)));
  v1::CompactSessionMetadata metadata;
  metadata.set_session(Format(SessionName{user.user, session.name}));
  operation.mutable_metadata()->PackFrom(metadata);
  v1::CompactSessionResponse response;
  if (session.memory) {
    const auto memory = tier.memories().Get(user, session.memory->Hex());
    using State = service::MemoryRecord::State;
    if (memory.ok() && memory->state == State::kRebuilding) return operation;
    if (memory.ok()) response.set_memory(Format(MemoryName{user.user, memory->name}));
  }
  operation.set_done(true);
  operation.mutable_response()->PackFrom(response);
  return operation;
}

v1::Operation OperationOfErasure(const service::ErasureRecord& erasure) {
  v1::Operation operation;
  operation.set_name(FormatOperation(kErasurePrefix + erasure.id.Hex()));
  v1::EraseUserMetadata metadata;
  metadata.set_erasure(FormatErasure(erasure.id.Hex()));
  operation.mutable_metadata()->PackFrom(metadata);
  using State = service::ErasureRecord::State;
  if (erasure.state == State::kRunning) return operation;
  operation.set_done(true);
  if (erasure.state == State::kDone) {
    operation.mutable_response()->PackFrom(ToProto(erasure));
  } else {
    *operation.mutable_error() = ToRpcStatus(base::Unavailable("{}", erasure.error));
  }
  return operation;
}

base::StatusOr<v1::Operation> FindOperation(service::MemoryTier& tier, const std::string& id) {
  const std::string tenant = service::UserRef().tenant;
  if (id.starts_with(kErasurePrefix)) {
    KVASIR_ASSIGN_OR_RETURN(const service::ErasureRecord erasure,
                            tier.GetErasure(tenant, id.substr(sizeof(kErasurePrefix) - 1)));
    return OperationOfErasure(erasure);
  }
  if (!id.starts_with(kClosePrefix)) return base::NotFound("no operation {}", id);
  const auto found = tier.sessions().FindHandle(tenant, id.substr(sizeof(kClosePrefix) - 1));
  const bool closed = found.ok() && found->session.state == service::SessionRecord::State::kClosed;
  if (absl::IsNotFound(found.status()) || (found.ok() && !closed)) {
    return base::NotFound("no operation {}", id);
  }
  KVASIR_RETURN_IF_ERROR(found.status());
  return OperationOfClose(tier, found->user, found->session);
}

}  // namespace kvasir::server

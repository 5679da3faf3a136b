#include "router/server/handlers/operations.h"

#include <utility>

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

v1::Operation Operations::OfClose(service::MemoryTier& tier, const std::string& id,
                                  const Close& close) {
  v1::Operation operation;
  operation.set_name(FormatOperation(id));
  v1::CompactSessionMetadata metadata;
  metadata.set_session(Format(SessionName{close.user.user, close.session}));
  operation.mutable_metadata()->PackFrom(metadata);
  v1::CompactSessionResponse response;
  if (!close.memory.empty()) {
    const auto memory = tier.memories().Get(close.user, close.memory);
    using State = service::MemoryRecord::State;
    if (memory.ok() && memory->state == State::kRebuilding) return operation;
    if (memory.ok()) response.set_memory(Format(MemoryName{close.user.user, close.memory}));
  }
  operation.set_done(true);
  operation.mutable_response()->PackFrom(response);
  return operation;
}

v1::Operation Operations::AddClose(service::MemoryTier& tier, const service::UserRef& user,
                                   const service::SessionRecord& session) {
  std::array<uint8_t, 16> bytes{};
  entropy_->Fill(bytes);
  const std::string id = kClosePrefix + base::ToHex(bytes);
  Close close{user, session.name, session.memory ? session.memory->Hex() : "",
              clock_->WallMicros()};
  {
    const std::lock_guard lock(mutex_);
    const int64_t oldest = close.create_us - kOperationHours * 3600 * 1'000'000;
    while (!order_.empty() &&
           (order_.size() >= kOperationsMax || closes_.at(order_.front()).create_us < oldest)) {
      closes_.erase(order_.front());
      order_.pop_front();
    }
    closes_[id] = close;
    order_.push_back(id);
  }
  return OfClose(tier, id, close);
}

v1::Operation Operations::OfErasure(const service::ErasureRecord& erasure) {
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

base::StatusOr<v1::Operation> Operations::Get(service::MemoryTier& tier,
                                              const std::string& id) const {
  if (id.starts_with(kErasurePrefix)) {
    KVASIR_ASSIGN_OR_RETURN(
        const service::ErasureRecord erasure,
        tier.GetErasure(service::UserRef().tenant, id.substr(sizeof(kErasurePrefix) - 1)));
    return OfErasure(erasure);
  }
  Close close;
  {
    const std::lock_guard lock(mutex_);
    const auto found = closes_.find(id);
    if (found == closes_.end()) return base::NotFound("no operation {}", id);
    close = found->second;
  }
  return OfClose(tier, id, close);
}

}  // namespace kvasir::server

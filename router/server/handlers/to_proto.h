// Conversions between the records of the memory tier and the messages of kvasir.v1.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <optional>
#include <string>

#include "engine/base/status.h"
#include "kvasir/v1/chat.pb.h"
#include "kvasir/v1/erasure.pb.h"
#include "kvasir/v1/memory.pb.h"
#include "kvasir/v1/session.pb.h"
#include "kvasir/v1/turn.pb.h"
#include "memory/service/records.h"
#include "router/server/route_info.h"
#include "router/server/turn_log.h"

namespace kvasir::server {

google::protobuf::Timestamp ToTimestamp(int64_t wall_us);

v1::MemoryMode ToProto(service::MemoryMode mode);
// Nothing for MEMORY_MODE_UNSPECIFIED.
std::optional<service::MemoryMode> FromProto(v1::MemoryMode mode);

v1::FinishReason FinishReasonFrom(const std::string& name);

v1::Session ToProto(const std::string& user, const std::string& model,
                    const service::SessionRecord& session);
v1::Usage ToProto(const service::TurnUsage& usage);
v1::Route ToProto(const std::string& user, const RouteInfo& route);
// `route`: that of the turn, with titles.
v1::Turn ToProto(const std::string& user, const std::string& session,
                 const service::TurnRecord& turn, const RouteInfo& route);
// `session`: name of the session it was made from; empty when that is gone: then it names no turns.
v1::Memory ToProto(const std::string& user, const std::string& session,
                   const service::MemoryRecord& memory);
v1::Erasure ToProto(const service::ErasureRecord& erasure);

// Event `seq` of a turn.
v1::ChatResponse ToProto(const std::string& user, const std::string& session, int64_t turn,
                         int64_t seq, const TurnEvent& event);

}  // namespace kvasir::server

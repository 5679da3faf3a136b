// Messages of kvasir.v1 as text for people.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>
#include <string>

#include "kvasir/v1/admin.pb.h"
#include "kvasir/v1/erasure.pb.h"
#include "kvasir/v1/memory.pb.h"
#include "kvasir/v1/route.pb.h"
#include "kvasir/v1/session.pb.h"
#include "kvasir/v1/turn.pb.h"
#include "router/client/output.h"

namespace kvasir::client {

// "1.4 MiB".
std::string BytesText(int64_t bytes);
// "2026-12-01 11:22:33Z", or "-" for no time.
std::string TimeText(const google::protobuf::Timestamp& time);
// "read_write" for MEMORY_MODE_READ_WRITE, "model mismatch" for MISS_REASON_MODEL_MISMATCH.
std::string ModeText(v1::MemoryMode mode);
std::string ReasonText(v1::MissReason reason);
std::string FinishText(v1::FinishReason reason);
// The last part of a resource name.
std::string LastPart(const std::string& name);

std::string Render(const Output& output, const v1::Session& session);
std::string Render(const Output& output, const v1::Memory& memory);
std::string Render(const Output& output, const v1::Turn& turn);
std::string Render(const Output& output, const v1::Erasure& erasure);
std::string RenderStats(const Output& output, const v1::Stats& stats);
// Which memories were used and why the others were not.
std::string Render(const Output& output, const v1::Route& route);
// "1 memory, 1303 tokens in 12 ms · 9 tokens computed · 31 tokens, 0.2 s to the first".
std::string UsageLine(const v1::Route& route, const v1::Usage& usage);

}  // namespace kvasir::client

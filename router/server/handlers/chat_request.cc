#include "router/server/handlers/chat_request.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>

#include "router/server/handlers/handler_context.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/invalid_field.h"
#include "router/server/resource_names.h"
#include "router/server/validate.h"

namespace kvasir::server {
namespace {

constexpr double kDefaultTemperature = 0.7;
constexpr uint32_t kSeedEnd = 2147483647;  // seeds are below

base::Digest DigestOf(v1::ChatRequest request) {
  request.clear_request_id();
  request.clear_resume_after_seq();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return base::Sha256(base::AsBytes(bytes));
}

uint64_t DrawSeed(base::Entropy& entropy) {
  std::array<uint8_t, 4> bytes{};
  entropy.Fill(bytes);
  uint32_t seed = 0;
  for (const uint8_t byte : bytes) seed = seed << 8 | byte;
  return seed % kSeedEnd;
}

}  // namespace

base::StatusOr<ChatCall> ToCall(const v1::ChatRequest& request, base::Entropy& entropy) {
  KVASIR_RETURN_IF_ERROR(ValidateRequest(request));
  KVASIR_ASSIGN_OR_RETURN(const SessionName name, ParseSessionName(request.session(), "session"));
  if (request.resume_after_seq() != 0 && request.request_id().empty()) {
    return InvalidField("resume_after_seq", "needs the request_id of the turn to resume");
  }
  ChatCall call;
  call.user = {kTenant, name.user};
  call.session = name.session;
  call.message = request.message();
  call.mode = FromProto(request.memory_mode());
  if (request.has_max_output_tokens()) call.max_output_tokens = request.max_output_tokens();
  call.sampling.temperature =
      request.has_temperature() ? request.temperature() : kDefaultTemperature;
  if (request.has_top_p()) call.sampling.top_p = request.top_p();
  if (request.has_top_k()) call.sampling.top_k = request.top_k();
  if (request.has_min_p()) call.sampling.min_p = request.min_p();
  call.sampling.seed =
      request.has_seed() ? static_cast<uint64_t>(request.seed()) : DrawSeed(entropy);
  call.stop.assign(request.stop().begin(), request.stop().end());
  call.logprobs = request.logprobs();
  call.request_id = request.request_id();
  call.request_digest = DigestOf(request);
  return call;
}

}  // namespace kvasir::server

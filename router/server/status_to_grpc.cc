#include "router/server/status_to_grpc.h"

#include <string>
#include <string_view>

#include "google/rpc/error_details.pb.h"
#include "router/server/reasons.h"
#include "router/server/utf8.h"

namespace kvasir::server {
namespace {

constexpr size_t kFieldBytesMax = 128;

void AddDetail(const ReasonInfo& reason, const std::string& field, google::rpc::Status* out) {
  switch (reason.detail) {
    case ReasonDetail::kNone:
      return;
    case ReasonDetail::kBadRequest: {
      if (field.empty()) return;
      google::rpc::BadRequest detail;
      auto* violation = detail.add_field_violations();
      violation->set_field(field);
      violation->set_description(out->message());
      out->add_details()->PackFrom(detail);
      return;
    }
    case ReasonDetail::kPrecondition: {
      google::rpc::PreconditionFailure detail;
      auto* violation = detail.add_violations();
      violation->set_type(std::string(reason.name));
      violation->set_subject(field);
      violation->set_description(out->message());
      out->add_details()->PackFrom(detail);
      return;
    }
    case ReasonDetail::kQuota: {
      google::rpc::QuotaFailure detail;
      auto* violation = detail.add_violations();
      violation->set_subject(field);
      violation->set_description(out->message());
      out->add_details()->PackFrom(detail);
      return;
    }
    case ReasonDetail::kRetry: {
      google::rpc::RetryInfo detail;
      detail.mutable_retry_delay()->set_seconds(reason.retry_ms / 1000);
      detail.mutable_retry_delay()->set_nanos(reason.retry_ms % 1000 * 1'000'000);
      out->add_details()->PackFrom(detail);
      return;
    }
  }
}

}  // namespace

google::rpc::Status ToRpcStatus(const base::Status& status) {
  google::rpc::Status out;
  if (status.ok()) return out;
  const ReasonInfo& reason = FindReason(base::Reason(status), status.code());
  out.set_code(static_cast<int>(reason.code));
  out.set_message(CutUtf8(ReplaceInvalidUtf8(base::ToStd(status.message())), kMessageBytesMax));
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason.name));
  info.set_domain(kErrorDomain);
  out.add_details()->PackFrom(info);
  AddDetail(reason, CutUtf8(ReplaceInvalidUtf8(base::Field(status)), kFieldBytesMax), &out);
  return out;
}

grpc::Status ToGrpc(const base::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status rpc = ToRpcStatus(status);
  return grpc::Status(static_cast<grpc::StatusCode>(rpc.code()), rpc.message(),
                      rpc.SerializeAsString());
}

}  // namespace kvasir::server

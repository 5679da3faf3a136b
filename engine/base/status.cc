#include "engine/base/status.h"

namespace kvasir::base {
namespace {

constexpr char kReasonUrl[] = "kvasir/reason";
constexpr char kFieldUrl[] = "kvasir/field";

Status WithPayload(Status status, const char* url, std::string_view value) {
  if (!status.ok()) status.SetPayload(url, absl::Cord(ToAbsl(value)));
  return status;
}

std::string Payload(const Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace

Status WithReason(Status status, std::string_view reason) {
  return WithPayload(std::move(status), kReasonUrl, reason);
}

std::string Reason(const Status& status) { return Payload(status, kReasonUrl); }

Status WithField(Status status, std::string_view field) {
  return WithPayload(std::move(status), kFieldUrl, field);
}

std::string Field(const Status& status) { return Payload(status, kFieldUrl); }

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  Status annotated(status.code(), fmt::format("{}: {}", context, ToStd(status.message())));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace kvasir::base

#include "router/server/validate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/base/check.h"
#include "router/server/invalid_field.h"
#include "router/server/request_rules.h"
#include "router/server/utf8.h"

namespace kvasir::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One field of one message, with what is needed to check it.
struct Place {
  const Message& message;
  const FieldDescriptor& field;
  const FieldRule* rule;
  std::string path;

  const Reflection& reflection() const { return *message.GetReflection(); }
};

base::Status CheckText(std::string_view text, std::string_view path, int64_t min, int64_t max) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes < min && bytes == 0) return InvalidField(path, "is required, {} to {} bytes", min, max);
  if (bytes < min || bytes > max) {
    return InvalidField(path, "has {} bytes, allowed are {} to {}", bytes, min, max);
  }
  const size_t valid = ValidUtf8Prefix(text);
  if (valid != text.size()) return InvalidField(path, "is not UTF-8 at byte {}", valid);
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) return InvalidField(path, "holds NUL at byte {}", nul);
  return base::OkStatus();
}

base::Status CheckRequestId(std::string_view text, const Place& place) {
  if (text.empty()) return base::OkStatus();
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  if (static_cast<double>(text.size()) > place.rule->max || !std::ranges::all_of(text, printable)) {
    return InvalidField(place.path, "{} bytes are not {} to {} printable ASCII characters",
                        text.size(), place.rule->min, place.rule->max);
  }
  return base::OkStatus();
}

base::Status CheckString(const Place& place) {
  std::string scratch;
  const std::string& text =
      place.reflection().GetStringReference(place.message, &place.field, &scratch);
  if (place.rule == nullptr) return CheckText(text, place.path, 0, kNameBytesMax);
  if (place.rule->kind == RuleKind::kRequestId) return CheckRequestId(text, place);
  return CheckText(text, place.path, static_cast<int64_t>(place.rule->min),
                   static_cast<int64_t>(place.rule->max));
}

base::Status CheckList(const Place& place) {
  const int count = place.reflection().FieldSize(place.message, &place.field);
  if (count > static_cast<int>(place.rule->max)) {
    return InvalidField(place.path, "has {} entries, at most {} are allowed", count,
                        place.rule->max);
  }
  for (int i = 0; i < count; ++i) {
    std::string scratch;
    const std::string& text =
        place.reflection().GetRepeatedStringReference(place.message, &place.field, i, &scratch);
    KVASIR_RETURN_IF_ERROR(
        CheckText(text, fmt::format("{}[{}]", place.path, i), 1, place.rule->entry_bytes_max));
  }
  return base::OkStatus();
}

// `value` as a double is exact enough to compare: no range ends above 2^53.
base::Status CheckNumber(double value, const Place& place) {
  const FieldRule& rule = *place.rule;
  const bool open = rule.kind == RuleKind::kRangeOpen;
  const bool inside = (open ? value > rule.min : value >= rule.min) && value <= rule.max;
  if (inside) return base::OkStatus();  // false for NaN
  return InvalidField(place.path, "{} is outside {}{} to {}", value, open ? "above " : "", rule.min,
                      rule.max);
}

base::Status CheckDuration(const Place& place) {
  const auto& message = place.reflection().GetMessage(place.message, &place.field);
  google::protobuf::Duration duration;
  duration.CopyFrom(message);
  const double seconds = static_cast<double>(duration.seconds()) + duration.nanos() * 1e-9;
  const bool whole = duration.nanos() >= 0 && duration.nanos() < 1'000'000'000;
  if (whole && seconds >= place.rule->min && seconds <= place.rule->max) return base::OkStatus();
  return InvalidField(place.path, "{} s and {} ns is outside {} to {} s", duration.seconds(),
                      duration.nanos(), place.rule->min, place.rule->max);
}

base::Status CheckEnum(const Place& place) {
  const int value = place.reflection().GetEnumValue(place.message, &place.field);
  if (place.field.enum_type()->FindValueByNumber(value) != nullptr) return base::OkStatus();
  return InvalidField(place.path, "{} is no {}", value, place.field.enum_type()->name());
}

bool IsSet(const Place& place) {
  return place.field.is_repeated() ? place.reflection().FieldSize(place.message, &place.field) > 0
                                   : place.reflection().HasField(place.message, &place.field);
}

base::Status CheckMessage(const Message& message, const std::string& prefix);

base::Status CheckScalar(const Place& place) {
  const Reflection& get = place.reflection();
  const bool number = place.field.cpp_type() != FieldDescriptor::CPPTYPE_BOOL &&
                      place.field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM &&
                      place.field.cpp_type() != FieldDescriptor::CPPTYPE_STRING;
  KVASIR_CHECK(!number || place.rule != nullptr);
  switch (place.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckString(place);
    case FieldDescriptor::CPPTYPE_ENUM:
      return CheckEnum(place);
    case FieldDescriptor::CPPTYPE_BOOL:
      return base::OkStatus();
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckNumber(get.GetInt32(place.message, &place.field), place);
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckNumber(static_cast<double>(get.GetInt64(place.message, &place.field)), place);
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckNumber(get.GetUInt32(place.message, &place.field), place);
    case FieldDescriptor::CPPTYPE_UINT64:
      return CheckNumber(static_cast<double>(get.GetUInt64(place.message, &place.field)), place);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return CheckNumber(get.GetFloat(place.message, &place.field), place);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return CheckNumber(get.GetDouble(place.message, &place.field), place);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return base::OkStatus();
}

base::Status CheckField(const Place& place) {
  const FieldRule* rule = place.rule;
  if (rule != nullptr && rule->kind == RuleKind::kUnset) {
    if (!IsSet(place)) return base::OkStatus();
    return InvalidField(place.path, "is set by the server only");
  }
  if (place.field.is_repeated()) {
    KVASIR_CHECK(rule != nullptr && rule->kind == RuleKind::kList);
    return CheckList(place);
  }
  if (place.field.has_presence() && !IsSet(place)) return base::OkStatus();
  if (rule != nullptr && rule->kind == RuleKind::kDuration) return CheckDuration(place);
  if (place.field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return CheckMessage(place.reflection().GetMessage(place.message, &place.field),
                        place.path + ".");
  }
  return CheckScalar(place);
}

base::Status CheckMessage(const Message& message, const std::string& prefix) {
  const auto& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const FieldRule* rule = FindRule(fmt::format("{}.{}", type.name(), field.name()));
    KVASIR_RETURN_IF_ERROR(CheckField({message, field, rule, prefix + field.name()}));
  }
  return base::OkStatus();
}

}  // namespace

base::Status ValidateRequest(const Message& request) { return CheckMessage(request, ""); }

}  // namespace kvasir::server

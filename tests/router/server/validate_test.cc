// Request validation: every numeric field of every request gets −1, INT_MAX, NaN, infinity; texts
// get every kind of damage. Goal: no field is forgotten, also one that is added later.
#include "router/server/validate.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "kvasir/v1/admin.pb.h"
#include "kvasir/v1/chat.pb.h"
#include "kvasir/v1/erasure.pb.h"
#include "kvasir/v1/memory.pb.h"
#include "kvasir/v1/operation.pb.h"
#include "kvasir/v1/user.pb.h"
#include "router/server/request_rules.h"

namespace kvasir::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kIntMax = std::numeric_limits<int>::max();

std::vector<const Descriptor*> RequestTypes() {
  std::vector<const Descriptor*> types;
  for (const Descriptor* in_file :
       {v1::GetStatsRequest::descriptor(), v1::ChatRequest::descriptor(),
        v1::GetErasureRequest::descriptor(), v1::Memory::descriptor(), v1::Operation::descriptor(),
        v1::Session::descriptor(), v1::Turn::descriptor(), v1::User::descriptor()}) {
    for (int i = 0; i < in_file->file()->message_type_count(); ++i) {
      const Descriptor* type = in_file->file()->message_type(i);
      if (type->name().ends_with("Request")) types.push_back(type);
    }
  }
  return types;
}

// A request of the type with the texts that are required.
std::unique_ptr<Message> ValidRequest(const Descriptor* type) {
  std::unique_ptr<Message> request(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  for (const char* name : {"message", "query"}) {
    const auto* field = type->FindFieldByName(name);
    if (field != nullptr) request->GetReflection()->SetString(request.get(), field, "hello");
  }
  return request;
}

void SetNumber(Message* message, const FieldDescriptor* field, double value) {
  const auto* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(message, field, static_cast<int32_t>(value));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(message, field, static_cast<int64_t>(value));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(message, field, static_cast<uint64_t>(value));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reflection->SetFloat(message, field, static_cast<float>(value));
    default:
      return reflection->SetDouble(message, field, value);
  }
}

bool IsFloat(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
}

bool IsNumber(const FieldDescriptor* field) {
  return IsFloat(field) || field->cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32 ||
         field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

void ExpectRefused(const Message& request, const std::string& field) {
  const base::Status status = ValidateRequest(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << request.ShortDebugString();
  EXPECT_EQ(base::Reason(status), "INVALID_FIELD");
  EXPECT_EQ(base::Field(status), field);
  EXPECT_THAT(std::string(base::ToStd(status.message())), HasSubstr(field));
}

// Tries bad numbers in every numeric field below `message`, a part of `request`; returns how many
// fields there were.
int TryBadNumbers(const Message& request, Message* message, const std::string& prefix) {
  int fields = 0;
  const Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field->is_repeated()) {
      Message* inner = message->GetReflection()->MutableMessage(message, field);
      const bool whole = inner->GetDescriptor()->file()->package() != "kvasir.v1";
      fields += whole ? 0 : TryBadNumbers(request, inner, path + ".");
      message->GetReflection()->ClearField(message, field);
    }
    if (!IsNumber(field)) continue;
    ++fields;
    std::vector<double> bad = {-1, static_cast<double>(kIntMax), -2147483648.0};
    if (IsFloat(field))
      bad.insert(bad.end(), {std::nan(""), kInfinity, -kInfinity, 1e300, -1e-300});
    for (const double value : bad) {
      SetNumber(message, field, value);
      ExpectRefused(request, path);
    }
    message->GetReflection()->ClearField(message, field);
  }
  return fields;
}

TEST(ValidateRequest, RefusesBadNumbersInEveryNumericFieldOfEveryRequest) {
  int fields = 0;
  for (const Descriptor* type : RequestTypes()) {
    const auto request = ValidRequest(type);
    ASSERT_TRUE(ValidateRequest(*request).ok()) << type->name();
    fields += TryBadNumbers(*request, request.get(), "");
  }
  EXPECT_GE(fields, 12);
}

TEST(ValidateRequest, AcceptsBothEndsOfARangeAndNothingBeyond) {
  v1::ChatRequest chat;
  chat.set_message("hello");
  for (const double good : {0.0, 2.0}) {
    chat.set_temperature(good);
    EXPECT_TRUE(ValidateRequest(chat).ok()) << good;
  }
  chat.set_temperature(std::nextafter(2.0, 3.0));
  ExpectRefused(chat, "temperature");
  chat.clear_temperature();
  chat.set_top_p(0);
  ExpectRefused(chat, "top_p");
  chat.set_top_p(1);
  chat.set_seed(kIntMax - 1);
  chat.set_max_output_tokens(0);
  ExpectRefused(chat, "max_output_tokens");
  chat.set_max_output_tokens(1);
  EXPECT_TRUE(ValidateRequest(chat).ok());
}

TEST(ValidateRequest, RefusesTextThatIsMissingTooLongBrokenOrHoldsNul) {
  v1::ChatRequest chat;
  ExpectRefused(chat, "message");
  chat.set_message(std::string(1 << 20, 'x'));
  EXPECT_TRUE(ValidateRequest(chat).ok());
  for (const std::string& bad : {std::string((1 << 20) + 1, 'x'), std::string("a\0b", 3),
                                 std::string("a\xff"), std::string("\xed\xa0\x80")}) {
    chat.set_message(bad);
    ExpectRefused(chat, "message");
  }
  v1::GetUserRequest get;
  get.set_name(std::string(kNameBytesMax + 1, 'u'));
  ExpectRefused(get, "name");
}

TEST(ValidateRequest, NamesTheEntryOfAListAndBoundsItsLength) {
  v1::ChatRequest chat;
  chat.set_message("hello");
  for (int i = 0; i < 8; ++i) chat.add_stop("end");
  EXPECT_TRUE(ValidateRequest(chat).ok());
  chat.set_stop(3, "");
  ExpectRefused(chat, "stop[3]");
  chat.set_stop(3, std::string(257, 's'));
  ExpectRefused(chat, "stop[3]");
  chat.set_stop(3, "end");
  chat.add_stop("ninth");
  ExpectRefused(chat, "stop");
}

TEST(ValidateRequest, RefusesEnumValuesOfNoVersion) {
  v1::ChatRequest chat;
  chat.set_message("hello");
  for (const int value : {-1, 5, kIntMax}) {
    chat.set_memory_mode(static_cast<v1::MemoryMode>(value));
    ExpectRefused(chat, "memory_mode");
  }
}

TEST(ValidateRequest, RefusesRequestIdsThatAreNotPrintable) {
  v1::ChatRequest chat;
  chat.set_message("hello");
  chat.set_request_id(std::string(128, '~'));
  EXPECT_TRUE(ValidateRequest(chat).ok());
  for (const std::string& bad :
       {std::string(129, 'r'), std::string("a b"), std::string("ä"), std::string("a\n")}) {
    chat.set_request_id(bad);
    ExpectRefused(chat, "request_id");
  }
}

TEST(ValidateRequest, RefusesFieldsThatTheServerSets) {
  const auto refuse = [](const std::string& field, auto change) {
    v1::CreateSessionRequest create;
    create.mutable_session()->set_display_name("trip");
    EXPECT_TRUE(ValidateRequest(create).ok());
    change(create.mutable_session());
    ExpectRefused(create, "session." + field);
  };
  refuse("name", [](auto* s) { s->set_name("users/a/sessions/b"); });
  refuse("state", [](auto* s) { s->set_state(v1::Session::STATE_CLOSED); });
  refuse("turn_count", [](auto* s) { s->set_turn_count(1); });
  refuse("memory", [](auto* s) { s->set_memory("users/a/memories/b"); });
  refuse("create_time", [](auto* s) { s->mutable_create_time(); });
  refuse("display_name", [](auto* s) { s->set_display_name(std::string(257, 'd')); });
  refuse("system_prompt", [](auto* s) { s->set_system_prompt(std::string(65537, 'd')); });
}

TEST(ValidateRequest, RefusesDurationsOutsideTheirRange) {
  v1::WaitOperationRequest wait;
  EXPECT_TRUE(ValidateRequest(wait).ok());
  wait.mutable_timeout()->set_seconds(600);
  EXPECT_TRUE(ValidateRequest(wait).ok());
  for (const auto& [seconds, nanos] :
       std::vector<std::pair<int64_t, int32_t>>{{600, 1},
                                                {-1, 0},
                                                {0, -1},
                                                {0, 1'000'000'000},
                                                {kIntMax, 0},
                                                {std::numeric_limits<int64_t>::max(), 0},
                                                {std::numeric_limits<int64_t>::min(), kIntMax}}) {
    wait.mutable_timeout()->set_seconds(seconds);
    wait.mutable_timeout()->set_nanos(nanos);
    ExpectRefused(wait, "timeout");
  }
}

}  // namespace
}  // namespace kvasir::server

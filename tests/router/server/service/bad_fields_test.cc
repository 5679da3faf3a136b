// Method: every field of every method's request, changed to what its type makes wrong (missing,
// oversized, negative, NaN, unknown, malformed text), found through descriptors, so that a new
// field or method is covered when it appears; undecodable and oversized requests; names of another
// user's resources. Goal: the documented code and reason, nothing changed, and a server that still
// works.
#include <google/protobuf/dynamic_message.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <future>
#include <limits>

#include "kvasir/v1/admin_service.pb.h"
#include "kvasir/v1/memory_service.pb.h"
#include "kvasir/v1/operation_service.pb.h"
#include "kvasir/v1/session_service.pb.h"
#include "kvasir/v1/user_service.pb.h"
#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

namespace pb = google::protobuf;

std::vector<const pb::MethodDescriptor*> AllMethods() {
  std::vector<const pb::MethodDescriptor*> methods;
  for (const char* name :
       {"SessionService", "MemoryService", "UserService", "OperationService", "AdminService"}) {
    const auto* service =
        pb::DescriptorPool::generated_pool()->FindServiceByName("kvasir.v1." + std::string(name));
    for (int i = 0; i < service->method_count(); ++i) methods.push_back(service->method(i));
  }
  return methods;
}

// Changes one thing of a request; says which.
struct Wrong {
  std::string what;
  std::function<void(pb::Message&)> change;
};

// What is wrong for any field of the type.
std::vector<Wrong> WrongValues(const pb::FieldDescriptor* field) {
  using F = pb::FieldDescriptor;
  std::vector<Wrong> wrong;
  const auto add = [&](std::string what, auto set) {
    wrong.push_back({field->name() + " " + what, [field, set](pb::Message& message) {
                       set(*message.GetReflection(), message, field);
                     }});
  };
  const auto integer = [&](int64_t value) {
    add(std::to_string(value), [value](const pb::Reflection& r, pb::Message& m, const F* f) {
      f->cpp_type() == F::CPPTYPE_INT32 ? r.SetInt32(&m, f, static_cast<int32_t>(value))
                                        : r.SetInt64(&m, f, value);
    });
  };
  switch (field->cpp_type()) {
    case F::CPPTYPE_STRING:
      for (const auto& [what, text] :
           {std::pair("no UTF-8", std::string("\xff")), std::pair("NUL", std::string("a\0b", 3)),
            std::pair("2 MiB", std::string(2 << 20, 'x'))}) {
        add(what, [text = text](const pb::Reflection& r, pb::Message& m, const F* f) {
          f->is_repeated() ? r.AddString(&m, f, text) : r.SetString(&m, f, text);
        });
      }
      break;
    case F::CPPTYPE_INT32:
      for (const int64_t value : {int64_t{-1}, int64_t{std::numeric_limits<int32_t>::min()},
                                  int64_t{std::numeric_limits<int32_t>::max()}}) {
        integer(value);
      }
      break;
    case F::CPPTYPE_INT64:
      for (const int64_t value : {int64_t{-1}, std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max()}) {
        integer(value);
      }
      break;
    case F::CPPTYPE_DOUBLE:
    case F::CPPTYPE_FLOAT:
      for (const double value : {std::numeric_limits<double>::quiet_NaN(), -1.0, 1e300,
                                 std::numeric_limits<double>::infinity()}) {
        add(std::to_string(value), [value](const pb::Reflection& r, pb::Message& m, const F* f) {
          f->cpp_type() == F::CPPTYPE_DOUBLE ? r.SetDouble(&m, f, value)
                                             : r.SetFloat(&m, f, static_cast<float>(value));
        });
      }
      break;
    case F::CPPTYPE_ENUM:
      add("77", [](const pb::Reflection& r, pb::Message& m, const F* f) {
        f->is_repeated() ? r.AddEnumValue(&m, f, 77) : r.SetEnumValue(&m, f, 77);
      });
      break;
    case F::CPPTYPE_MESSAGE:
      for (int i = 0; i < field->message_type()->field_count(); ++i) {
        for (const Wrong& inner : WrongValues(field->message_type()->field(i))) {
          add(inner.what,
              [change = inner.change](const pb::Reflection& r, pb::Message& m, const F* f) {
                change(f->is_repeated() ? *r.AddMessage(&m, f) : *r.MutableMessage(&m, f));
              });
        }
      }
      break;
    default:
      break;  // a bool has no wrong value
  }
  return wrong;
}

class ServiceBadFields : public ::testing::Test {
 protected:
  ServiceBadFields() : server_(data_.path()), generic_(server_.NewChannel()) {
    for (const char* user : {"ana", "bob"}) {
      server_.Say(server_.NewSession(user, v1::MEMORY_MODE_UNSPECIFIED, user), "My cat is Tofu");
      server_.Close(Session(user));
      server_.NewSession(user, v1::MEMORY_MODE_UNSPECIFIED, std::string(user) + "2");
      memory_[user] = server_.Memories(user).front().name();
    }
  }

  static std::string Session(const std::string& user) {
    return "users/" + user + "/sessions/" + user;
  }

  // A right request of the method, about ana.
  std::unique_ptr<pb::Message> Right(const pb::MethodDescriptor* method) {
    const pb::Descriptor* type = method->input_type();
    std::unique_ptr<pb::Message> request(
        pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
    const auto set = [&](const char* field, const std::string& value) {
      const auto* f = type->FindFieldByName(field);
      if (f != nullptr && f->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
        request->GetReflection()->SetString(request.get(), f, value);
      }
    };
    const std::string name = method->name();
    set("parent", name == "ListTurns" ? Session("ana") : "users/ana");
    set("session", Session("ana") + "2");
    set("message", "Hello");
    set("query", "cat");
    set("name", name.find("Memory") != std::string::npos      ? memory_["ana"]
                : name.find("Turn") != std::string::npos      ? Session("ana") + "/turns/1"
                : name.find("Session") != std::string::npos   ? Session("ana")
                : name.find("Operation") != std::string::npos ? "operations/none"
                : name == "GetErasure"                        ? "erasures/none"
                                                              : "users/ana");
    return request;
  }

  grpc::Status Send(const pb::MethodDescriptor* method, const std::string& bytes) {
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::ClientContext context;
    std::promise<grpc::Status> done;
    generic_.UnaryCall(&context, "/" + method->service()->full_name() + "/" + method->name(), {},
                       &request, &response,
                       [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  // All that is listed of both users.
  std::string Everything() {
    std::string all;
    for (const char* user : {"ana", "bob"}) {
      v1::ListSessionsRequest list;
      list.set_parent(std::string("users/") + user);
      v1::ListSessionsResponse sessions;
      EXPECT_TRUE(
          Call(server_.sessions(), &v1::SessionService::Stub::ListSessions, list, &sessions).ok());
      all += sessions.DebugString();
      for (const auto& session : sessions.sessions()) {
        v1::ListTurnsRequest turns_of;
        turns_of.set_parent(session.name());
        v1::ListTurnsResponse turns;
        EXPECT_TRUE(
            Call(server_.sessions(), &v1::SessionService::Stub::ListTurns, turns_of, &turns).ok());
        all += turns.DebugString();
      }
      for (const v1::Memory& memory : server_.Memories(user)) all += memory.DebugString();
    }
    return all;
  }

  void ExpectUnchanged(const std::string& before) {
    EXPECT_EQ(Everything(), before);
    EXPECT_TRUE(server_.Consistent());
    EXPECT_TRUE(server_.Say(server_.NewSession("eve"), "Hello").status.ok());
  }

  TempFolder data_;
  TinyServer server_;
  grpc::GenericStub generic_;
  std::map<std::string, std::string> memory_;
};

TEST_F(ServiceBadFields, EveryFieldOfEveryMethodIsChecked) {
  const std::string before = Everything();
  int cases = 0;
  for (const pb::MethodDescriptor* method : AllMethods()) {
    for (int i = 0; i < method->input_type()->field_count(); ++i) {
      for (const Wrong& wrong : WrongValues(method->input_type()->field(i))) {
        const auto request = Right(method);
        wrong.change(*request);
        const grpc::Status status = Send(method, request->SerializeAsString());
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
            << method->name() << ": " << wrong.what << ": " << status.error_message();
        EXPECT_TRUE(ReasonOf(status) == "INVALID_FIELD" ||
                    ReasonOf(status) == "PAGE_TOKEN_MISMATCH")
            << method->name() << ": " << wrong.what << ": " << ReasonOf(status);
        ++cases;
      }
    }
  }
  EXPECT_GT(cases, 150);
  ExpectUnchanged(before);
}

TEST_F(ServiceBadFields, RequestsThatAreNoMessageOrTooLargeAreRefused) {
  const std::string before = Everything();
  for (const pb::MethodDescriptor* method : AllMethods()) {
    // A field number that ends nowhere; a length past the end; a group that never ends.
    for (const std::string& bytes : {std::string("\xff\xff\xff\xff"),
                                     std::string("\x0a\x7f"
                                                 "a"),
                                     std::string("\x0b")}) {
      const grpc::Status status = Send(method, bytes);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method->name();
      EXPECT_EQ(ReasonOf(status), "INVALID_FIELD") << method->name();
    }
    const grpc::Status status = Send(method, std::string(5 << 20, '\0'));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method->name();
  }
  ExpectUnchanged(before);
}

// Bob's session, turn and memory exist: under ana's name they do not.
TEST_F(ServiceBadFields, AnotherUsersResourcesAreNotFound) {
  const std::string before = Everything();
  const std::string session = "users/ana/sessions/bob";
  const std::string memory =
      "users/ana/memories/" + memory_["bob"].substr(memory_["bob"].rfind('/') + 1);
  int cases = 0;
  for (const pb::MethodDescriptor* method : AllMethods()) {
    const auto request = Right(method);
    const auto& reflection = *request->GetReflection();
    const std::string name = method->name();
    for (const char* field : {"name", "parent", "session", "turn"}) {
      const auto* f = method->input_type()->FindFieldByName(field);
      if (f == nullptr || f->cpp_type() != pb::FieldDescriptor::CPPTYPE_STRING) continue;
      const std::string value = reflection.GetString(*request, f);
      const auto foreign = Right(method);
      if (value.find("/memories/") != std::string::npos) {
        reflection.SetString(foreign.get(), f, memory);
      } else if (value.find("/turns/") != std::string::npos) {
        reflection.SetString(foreign.get(), f, session + "/turns/1");
      } else if (value.find("/sessions/") != std::string::npos) {
        reflection.SetString(foreign.get(), f, session);
      } else {
        continue;
      }
      const grpc::Status status = Send(method, foreign->SerializeAsString());
      EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND) << name << " " << field;
      EXPECT_EQ(ReasonOf(status), "RESOURCE_NOT_FOUND") << name << " " << field;
      ++cases;
    }
  }
  EXPECT_GE(cases, 10);
  ExpectUnchanged(before);
}

}  // namespace
}  // namespace kvasir::server

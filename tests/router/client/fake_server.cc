#include "tests/router/client/fake_server.h"

#include <grpcpp/server_builder.h>

#include <condition_variable>
#include <sstream>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace kvasir::client {
namespace {

using grpc::ServerContext;
using grpc::Status;

constexpr char kMemory[] = "users/ann/memories/m1";

Status Failure(grpc::StatusCode code, const std::string& reason, const std::string& message) {
  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("kvasir");
  details.add_details()->PackFrom(info);
  return Status(code, message, details.SerializeAsString());
}

v1::Operation Running(const std::string& name) {
  v1::Operation operation;
  operation.set_name(name);
  return operation;
}

v1::Route ExampleRoute() {
  v1::Route route;
  route.set_memory_mode(v1::MEMORY_MODE_READ_WRITE);
  auto* mount = route.add_mounts();
  mount->set_memory(kMemory);
  mount->set_title("the trip");
  mount->set_score(1.5);
  mount->set_tier(v1::TIER_DISK);
  mount->set_slots(130);
  mount->set_logical_tokens(1303);
  mount->set_restore_ms(12.25);
  auto* unused = route.add_unused();
  unused->set_memory("users/ann/memories/m2");
  unused->set_reason(v1::MISS_REASON_SLOT_BUDGET);
  unused->set_detail("1303 slots, 871 left");
  return route;
}

class Sessions final : public v1::SessionService::Service {
 public:
  explicit Sessions(FakeState& state) : state_(state) {}

  Status CreateSession(ServerContext*, const v1::CreateSessionRequest* request,
                       v1::Session* session) override {
    const std::lock_guard lock(state_.mutex);
    state_.creates.push_back(*request);
    const std::string id = request->session_id().empty() ? "s9" : request->session_id();
    session->set_name(request->parent() + "/sessions/" + id);
    return Status::OK;
  }

  Status GetSession(ServerContext*, const v1::GetSessionRequest* request,
                    v1::Session* session) override {
    if (request->name().ends_with("/gone")) {
      return Failure(grpc::StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND", "no session gone");
    }
    session->set_name(request->name());
    session->set_state(v1::Session::STATE_OPEN);
    session->set_turn_count(1);
    return Status::OK;
  }

  Status ListSessions(ServerContext*, const v1::ListSessionsRequest* request,
                      v1::ListSessionsResponse* response) override {
    const bool first = request->page_token().empty();
    auto* session = response->add_sessions();
    session->set_name(request->parent() + (first ? "/sessions/s1" : "/sessions/s2"));
    session->set_display_name("Reise \x1b[31m nach Gävle");
    session->set_turn_count(first ? 3 : 12);
    session->mutable_create_time()->set_seconds(1'700'000'000);
    if (first) response->set_next_page_token("second");
    return Status::OK;
  }

  Status DeleteSession(ServerContext*, const v1::DeleteSessionRequest* request,
                       google::protobuf::Empty*) override {
    state_.Note("DeleteSession " + request->name());
    return Status::OK;
  }

  Status ListTurns(ServerContext*, const v1::ListTurnsRequest* request,
                   v1::ListTurnsResponse* response) override {
    auto* turn = response->add_turns();
    turn->set_name(request->parent() + "/turns/1");
    turn->set_message("hello");
    turn->set_text("echo: hello");
    turn->set_state(v1::Turn::STATE_DONE);
    turn->set_finish_reason(v1::FINISH_REASON_STOP);
    auto* deleted = response->add_turns();
    deleted->set_name(request->parent() + "/turns/2");
    deleted->set_state(v1::Turn::STATE_DONE);
    return Status::OK;
  }

  Status CompactSession(ServerContext*, const v1::CompactSessionRequest* request,
                        v1::Operation* operation) override {
    state_.Note("CompactSession " + request->name());
    *operation = Running("operations/close");
    return Status::OK;
  }

  Status CancelTurn(ServerContext*, const v1::CancelTurnRequest* request, v1::Turn* turn) override {
    state_.Note("CancelTurn " + request->name());
    turn->set_name(request->name());
    state_.cancelled = true;
    state_.cancelled.notify_all();
    return Status::OK;
  }

  Status Chat(ServerContext*, const v1::ChatRequest* request,
              grpc::ServerWriter<v1::ChatResponse>* writer) override {
    {
      const std::lock_guard lock(state_.mutex);
      state_.chats.push_back(*request);
    }
    if (request->message() == "fail") {
      return Failure(grpc::StatusCode::ABORTED, "SESSION_BUSY", "a turn of the session is running");
    }
    if (request->message() == "closed") {
      return Failure(grpc::StatusCode::FAILED_PRECONDITION, "SESSION_CLOSED",
                     "session s9 is closed");
    }
    v1::ChatResponse event;
    event.set_seq(1);
    event.set_turn(request->session() + "/turns/1");
    *event.mutable_route() = ExampleRoute();
    writer->Write(event);
    event.mutable_delta()->set_text(state_.delta);
    writer->Write(event);
    if (state_.hold_reply) {
      state_.cancelled.wait(false);
    } else {
      event.mutable_delta()->set_text(request->message());
      writer->Write(event);
    }
    if (request->message() == "drop") return Status::OK;
    event.mutable_usage()->set_prompt_tokens(1400);
    event.mutable_usage()->set_computed_tokens(9);
    event.mutable_usage()->set_memory_tokens(1324);
    writer->Write(event);
    event.mutable_finish()->set_turn(event.turn());
    event.mutable_finish()->set_reason(state_.hold_reply ? v1::FINISH_REASON_CANCELLED
                                                         : v1::FINISH_REASON_STOP);
    writer->Write(event);
    return Status::OK;
  }

 private:
  FakeState& state_;
};

class Memories final : public v1::MemoryService::Service {
 public:
  explicit Memories(FakeState& state) : state_(state) {}

  static void Fill(v1::Memory* memory, const std::string& name) {
    memory->set_name(name);
    memory->set_state(v1::Memory::STATE_EXACT);
    memory->set_title("the trip");
    memory->mutable_kv()->set_logical_tokens(1303);
    memory->mutable_kv()->set_bytes(3 << 20);
  }

  Status GetMemory(ServerContext*, const v1::GetMemoryRequest* request,
                   v1::Memory* memory) override {
    if (request->name().ends_with("/gone")) {
      return Failure(grpc::StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND", "no memory gone");
    }
    Fill(memory, request->name());
    if (request->view() == v1::MEMORY_VIEW_FULL) memory->set_source_text("user: we go to Gävle");
    return Status::OK;
  }

  Status ListMemories(ServerContext*, const v1::ListMemoriesRequest* request,
                      v1::ListMemoriesResponse* response) override {
    const bool first = request->page_token().empty();
    Fill(response->add_memories(), request->parent() + (first ? "/memories/m1" : "/memories/m2"));
    if (first) response->set_next_page_token("second");
    return Status::OK;
  }

  Status SearchMemories(ServerContext*, const v1::SearchMemoriesRequest* request,
                        v1::SearchMemoriesResponse* response) override {
    state_.Note("SearchMemories " + request->query() + " " + std::to_string(request->top_k()));
    if (request->query() == "nothing") return Status::OK;
    auto* result = response->add_results();
    Fill(result->mutable_memory(), request->parent() + "/memories/m1");
    result->set_score(2.5);
    return Status::OK;
  }

  Status DeleteMemory(ServerContext*, const v1::DeleteMemoryRequest* request,
                      v1::Memory* memory) override {
    state_.Note("DeleteMemory " + request->name());
    memory->set_name(request->name());  // the rest is gone
    memory->set_state(v1::Memory::STATE_DELETED);
    return Status::OK;
  }

  Status ExplainRoute(ServerContext*, const v1::ExplainRouteRequest* request,
                      v1::ExplainRouteResponse* response) override {
    state_.Note("ExplainRoute " + request->turn());
    *response->mutable_route() = ExampleRoute();
    return Status::OK;
  }

 private:
  FakeState& state_;
};

class Users final : public v1::UserService::Service {
 public:
  explicit Users(FakeState& state) : state_(state) {}

  Status GetUser(ServerContext*, const v1::GetUserRequest* request, v1::User* user) override {
    user->set_name(request->name());
    user->set_memory_count(2);
    return Status::OK;
  }

  Status EraseUser(ServerContext*, const v1::EraseUserRequest* request,
                   v1::Operation* operation) override {
    state_.Note("EraseUser " + request->name());
    *operation = Running("operations/erase");
    return Status::OK;
  }

 private:
  FakeState& state_;
};

class Operations final : public v1::OperationService::Service {
 public:
  explicit Operations(FakeState& state) : state_(state) {}

  // Done at the second call.
  Status WaitOperation(ServerContext*, const v1::WaitOperationRequest* request,
                       v1::Operation* operation) override {
    *operation = Running(request->name());
    if (++state_.waits < 2) return Status::OK;
    operation->set_done(true);
    if (request->name() == "operations/erase") {
      v1::Erasure erasure;
      erasure.set_name("erasures/e1");
      erasure.set_state(v1::Erasure::STATE_DONE);
      operation->mutable_response()->PackFrom(erasure);
    } else {
      v1::CompactSessionResponse closed;
      closed.set_memory(kMemory);
      operation->mutable_response()->PackFrom(closed);
    }
    return Status::OK;
  }

 private:
  FakeState& state_;
};

class Admin final : public v1::AdminService::Service {
 public:
  Status GetServerInfo(ServerContext*, const v1::GetServerInfoRequest*,
                       v1::ServerInfo* info) override {
    info->set_version("1.2.3");
    info->set_model("models/tiny");
    return Status::OK;
  }
  Status GetStats(ServerContext*, const v1::GetStatsRequest*, v1::Stats* stats) override {
    stats->set_memories(2);
    stats->set_state_disk_bytes(3 << 20);
    return Status::OK;
  }
};

class Health final : public grpc::health::v1::Health::Service {
 public:
  explicit Health(FakeState& state) : state_(state) {}
  Status Check(ServerContext*, const grpc::health::v1::HealthCheckRequest*,
               grpc::health::v1::HealthCheckResponse* response) override {
    response->set_status(state_.serving ? grpc::health::v1::HealthCheckResponse::SERVING
                                        : grpc::health::v1::HealthCheckResponse::NOT_SERVING);
    return Status::OK;
  }

 private:
  FakeState& state_;
};

}  // namespace

FakeServer::FakeServer() {
  services_.push_back(std::make_unique<Sessions>(state_));
  services_.push_back(std::make_unique<Memories>(state_));
  services_.push_back(std::make_unique<Users>(state_));
  services_.push_back(std::make_unique<Operations>(state_));
  services_.push_back(std::make_unique<Admin>());
  services_.push_back(std::make_unique<Health>(state_));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  for (const auto& service : services_) builder.RegisterService(service.get());
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

RunResult RunKvasir(const std::string& address, std::vector<std::string> arguments,
                    const std::string& input) {
  arguments.insert(arguments.begin(), {"--server", address, "--user", "ann"});
  std::istringstream in(input);
  std::ostringstream out, err;
  const int status = Run(arguments, {.in = in, .out = out, .err = err});
  return {status, out.str(), err.str()};
}

}  // namespace kvasir::client

// FakeServer: the services of kvasir.v1 in memory, for tests of the client: two pages of
// everything, a reply that echoes.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "kvasir/v1/admin_service.grpc.pb.h"
#include "kvasir/v1/memory_service.grpc.pb.h"
#include "kvasir/v1/operation_service.grpc.pb.h"
#include "kvasir/v1/session_service.grpc.pb.h"
#include "kvasir/v1/user_service.grpc.pb.h"
#include "router/client/run.h"

namespace kvasir::client {

// What the fake was asked and how it behaves.
struct FakeState {
  std::mutex mutex;
  std::vector<v1::ChatRequest> chats;             // guarded by mutex
  std::vector<v1::CreateSessionRequest> creates;  // guarded by mutex
  std::vector<std::string> calls;                 // guarded by mutex: "DeleteMemory users/…"
  std::atomic<int> waits = 0;                     // WaitOperation calls
  std::atomic<bool> serving = true;
  std::atomic<bool> hold_reply = false;  // Chat sends one delta, then waits for CancelTurn
  std::atomic<bool> cancelled = false;
  std::string delta = "echo: ";  // in front of every reply

  void Note(const std::string& call) {
    const std::lock_guard lock(mutex);
    calls.push_back(call);
  }
};

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  FakeState& state() { return state_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  FakeState state_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// What a run of kvasir left behind.
struct RunResult {
  int status = -1;
  std::string out;
  std::string err;
};

// Runs kvasir against `address` with `input` as its standard input.
RunResult RunKvasir(const std::string& address, std::vector<std::string> arguments,
                    const std::string& input = "");

}  // namespace kvasir::client

#include "router/server/server.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "router/server/chat_turns.h"
#include "router/server/grpc_server.h"
#include "router/server/handlers/admin_service.h"
#include "router/server/handlers/memory_service.h"
#include "router/server/handlers/operation_service.h"
#include "router/server/handlers/session_service.h"
#include "router/server/handlers/user_service.h"
#include "router/server/protobuf_log.h"
#include "router/server/ticker.h"

namespace kvasir::server {
namespace {

constexpr auto kTick = std::chrono::milliseconds(200);
constexpr size_t kRequestsWaitingMax = 1024;
constexpr int64_t kCancelledTurnsUs = 5'000'000;  // time that cancelled turns get to be stored
constexpr int64_t kStopJobsUs = 5'000'000;
constexpr double kGraceS = 2;  // for calls that are no turns

std::string RandomKey(base::Entropy& entropy) {
  std::array<uint8_t, 32> key{};
  entropy.Fill(key);
  return std::string(key.begin(), key.end());
}

service::TierOptions TierOptionsOf(const Options& options) {
  service::TierOptions tier;
  tier.dir = options.data + "/store";
  tier.ram_cache_bytes = static_cast<size_t>(options.state_cache_bytes_max);
  tier.session_idle_close_s = options.session_idle_close_s;
  return tier;
}

// Made for the owner alone when it is not there. Errors: InvalidArgument (cannot be made).
base::Status MakeDataFolder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::create_directories(path, error)) {
    if (!error && std::filesystem::is_directory(path)) return base::OkStatus();
    if (!error) error = std::make_error_code(std::errc::not_a_directory);
    return base::InvalidArgument("data folder {}: {}", path, error.message());
  }
  std::filesystem::permissions(path, std::filesystem::perms::owner_all, error);
  return base::OkStatus();
}

}  // namespace

struct Server::State {
  State(const Options& wanted, const base::Clock* c, base::Entropy* e)
      : options(wanted),
        clock(c),
        entropy(e),
        pool(static_cast<int>(options.handler_threads), kRequestsWaitingMax),
        context(&pool, &metrics, clock, entropy, RandomKey(*entropy)),
        admin(&context),
        memory(&context),
        operation(&context),
        session(&context),
        user(&context),
        sessions({.turns_max = options.running_turns_max + options.queued_turns_max}) {}

  void Tick();

  const Options options;
  const base::Clock* const clock;
  base::Entropy* const entropy;
  Metrics metrics;
  WorkPool pool;
  HandlerContext context;
  AdminHandlers admin;
  MemoryHandlers memory;
  OperationHandlers operation;
  SessionHandlers session;
  UserHandlers user;
  // Each needs those before it.
  std::unique_ptr<ModelHost> host;
  LiveSessions sessions;
  std::unique_ptr<service::MemoryTier> tier;
  std::unique_ptr<ChatTurns> turns;
  Served served;
  std::unique_ptr<GrpcServer> grpc;
  std::unique_ptr<Ticker> ticker;
  bool stopped = false;
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() { Stop(); }
int Server::port() const { return state_->grpc->port(); }
const Metrics& Server::metrics() const { return state_->metrics; }

base::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options,
                                                      const base::Clock* clock,
                                                      base::Entropy* entropy) {
  auto state = std::make_unique<State>(options, clock, entropy);
  const std::array<grpc::Service*, 5> services = {&state->admin, &state->memory, &state->operation,
                                                  &state->session, &state->user};
  KVASIR_ASSIGN_OR_RETURN(state->grpc, GrpcServer::Start(options, services));
  if (!options.metrics_listen.empty()) {
    KVASIR_RETURN_IF_ERROR(state->metrics.Expose(options.metrics_listen));
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

base::Status Server::Load(const std::function<void(double)>& progress) {
  State& s = *state_;
  KVASIR_RETURN_IF_ERROR(MakeDataFolder(s.options.data));
  KVASIR_ASSIGN_OR_RETURN(
      s.host, ModelHost::Load(s.options, s.options.data + "/model_id.json", s.clock, progress));
  s.sessions.SetEngine(&s.host->engine());
  KVASIR_ASSIGN_OR_RETURN(s.tier, service::MemoryTier::Open(TierOptionsOf(s.options), s.clock,
                                                            s.entropy, &s.host->builder()));
  s.tier->SetDeletionListener(&s.sessions);
  s.turns = std::make_unique<ChatTurns>(ChatTurns::Dependencies{.options = &s.options,
                                                                .host = s.host.get(),
                                                                .tier = s.tier.get(),
                                                                .sessions = &s.sessions,
                                                                .pool = &s.pool,
                                                                .clock = s.clock,
                                                                .metrics = &s.metrics});
  s.served = {.options = &s.options,
              .host = s.host.get(),
              .tier = s.tier.get(),
              .sessions = &s.sessions,
              .turns = s.turns.get(),
              .start_us = s.clock->WallMicros(),
              .threads = s.host->loaded().threads->threads()};
  s.tier->StartJobs();
  s.ticker = std::make_unique<Ticker>(kTick, [state = &s] { state->Tick(); });
  s.context.SetServed(&s.served);
  s.grpc->SetServing(true);
  return base::OkStatus();
}

void Server::State::Tick() {
  turns->Tick();
  session.streams().Tick();
  operation.Tick();
  const runtime::Engine::Stats engine = host->engine().stats();
  const service::TierStats stored = tier->GetStats();
  metrics.SetLevels({.running_turns = engine.requests_running,
                     .queued_turns = engine.requests_queued,
                     .pending_jobs = stored.jobs_pending,
                     .state_ram_bytes = static_cast<int64_t>(stored.ram_cache_bytes),
                     .state_disk_bytes = static_cast<int64_t>(stored.state_bytes),
                     .kv_used_bytes = static_cast<int64_t>(engine.kv_bytes_used),
                     .dropped_log_lines = DroppedProtobufLines()});
}

void Server::Drain() {
  State& s = *state_;
  s.grpc->SetServing(false);
  s.context.Drain();
  if (s.turns != nullptr) s.turns->Drain();
}

void Server::Stop() {
  State& s = *state_;
  if (std::exchange(s.stopped, true)) return;
  Drain();
  if (s.turns != nullptr) {
    s.sessions.WaitUntilIdle(s.options.drain_s * 1'000'000);
    s.turns->CancelAll();
    s.sessions.WaitUntilIdle(kCancelledTurnsUs);
  }
  s.operation.EndWaits();
  if (s.tier != nullptr) s.tier->StopJobs(kStopJobsUs);
  s.grpc->Stop(kGraceS);
  s.context.SetServed(nullptr);
  s.ticker.reset();
  if (s.host != nullptr) s.host->engine().Shutdown(0);
  s.pool.Stop();
}

}  // namespace kvasir::server

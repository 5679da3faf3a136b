// kvasir doctor | stats

#include "router/client/commands/commands.h"
#include "router/client/render.h"

namespace kvasir::client {
namespace {

using grpc::health::v1::HealthCheckResponse;

// Health and description of the server; OK only when it serves.
base::Status Doctor(Client& client) {
  Output& output = client.output;
  KVASIR_ASSIGN_OR_RETURN(
      const auto health,
      client.connection.Call(client.connection.health(), &grpc::health::v1::Health::Stub::Check,
                             grpc::health::v1::HealthCheckRequest(), std::chrono::seconds(5)));
  const std::string state = HealthCheckResponse::ServingStatus_Name(health.status());
  if (health.status() != HealthCheckResponse::SERVING) {
    if (output.json()) output.out() << fmt::format("{{\"health\":\"{}\"}}\n", state);
    return base::Unavailable("the server at {} is {}: its model is being loaded, or it stops",
                             client.connection.address(), state);
  }
  KVASIR_ASSIGN_OR_RETURN(
      const auto info,
      client.connection.Call(client.connection.admin(), &v1::AdminService::Stub::GetServerInfo,
                             v1::GetServerInfoRequest()));
  if (output.json()) {
    output.out() << fmt::format("{{\"health\":\"{}\",\"server_info\":{}}}\n", state, ToJson(info));
    return base::OkStatus();
  }
  output.out() << RenderFields(
      output, {{"server", client.connection.address()},
               {"health", output.Paint(Tint::kGreen, state)},
               {"version", info.version()},
               {"model", info.model()},
               {"model id", info.model_id().substr(0, 16)},
               {"architecture", info.architecture()},
               {"context", fmt::format("{} tokens", info.context_tokens())},
               {"states", info.build_id()},
               {"memory", info.memory_supported() ? "yes" : "no: this model allows no mounts"},
               {"threads", fmt::format("{}", info.threads())},
               {"started", TimeText(info.start_time())}});
  return base::OkStatus();
}

base::Status ShowStats(Client& client) {
  KVASIR_ASSIGN_OR_RETURN(
      const auto stats,
      client.connection.Call(client.connection.admin(), &v1::AdminService::Stub::GetStats,
                             v1::GetStatsRequest()));
  client.output.out() << (client.output.json() ? ToJson(stats) + "\n"
                                               : RenderStats(client.output, stats));
  return base::OkStatus();
}

}  // namespace

void AddAdminCommands(CLI::App& app, Command& chosen) {
  app.add_subcommand("doctor", "is the server well; status 0 only when it serves")
      ->callback([&chosen] { chosen = Doctor; });
  app.add_subcommand("stats", "figures of the server")->callback([&chosen] { chosen = ShowStats; });
}

}  // namespace kvasir::client

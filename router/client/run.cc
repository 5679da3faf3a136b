#include "router/client/run.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "router/client/client.h"
#include "router/client/commands/commands.h"
#include "router/client/usage.h"

namespace kvasir::client {
namespace {

constexpr int kOk = 0, kFailed = 1, kUsage = 2;

struct GlobalOptions {
  std::string server = "127.0.0.1:7437";
  std::string user = "me";
  Format format = Format::kTable;
};

void AddGlobalOptions(CLI::App& app, GlobalOptions* options) {
  app.add_option("--server", options->server, "HOST:PORT of kvasird")
      ->capture_default_str()
      ->check([](const std::string& text) {
        return IsHostAndPort(text)
                   ? ""
                   : fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:7437", text);
      });
  app.add_option("--user", options->user, "whose sessions and memories")->capture_default_str();
  AddChoice<Format>(app, "-o,--output", "table or json",
                    {{"table", Format::kTable}, {"json", Format::kJson}}, &options->format)
      ->option_text("FORMAT");
}

// "kvasir: name: 'x' is … (INVALID_FIELD)", or the same as JSON.
void PrintFailure(const base::Status& status, Output& output) {
  const std::string message(base::ToStd(status.message()));
  const std::string reason = base::Reason(status);
  if (output.json()) {
    nlohmann::ordered_json error;
    error["code"] = absl::StatusCodeToString(status.code());
    error["reason"] = reason;
    error["message"] = message;
    const auto lossy = nlohmann::ordered_json::error_handler_t::replace;
    output.notes() << nlohmann::ordered_json{{"error", error}}.dump(-1, ' ', false, lossy) << "\n";
    return;
  }
  const std::string suffix = reason.empty() ? "" : " (" + reason + ")";
  output.notes() << output.Paint(Tint::kRed, "kvasir: ") << Printable(message) << suffix << "\n";
}

// An invalid argument that no server refused: every refusal of kvasird has a reason.
bool IsUsageError(const base::Status& status) {
  return absl::IsInvalidArgument(status) && base::Reason(status).empty();
}

}  // namespace

int Run(const std::vector<std::string>& arguments, const Environment& environment) {
  CLI::App app("kvasir: talks to kvasird, a language model with a memory per user.", "kvasir");
  GlobalOptions options;
  Command command;
  AddGlobalOptions(app, &options);
  app.set_version_flag("--version", "kvasir " KVASIR_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  AddChatCommand(app, command);
  AddSessionCommands(app, command);
  AddMemoryCommands(app, command);
  AddUserCommands(app, command);
  AddAdminCommands(app, command);
  AddHelpCommand(app, command);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, environment.out, environment.err);
    environment.err << "kvasir: " << Printable(UsageMessage(app, error)) << "\n";
    return kUsage;
  }
  Output output(
      environment.out, environment.err,
      {.format = options.format,
       .color = environment.out_terminal && environment.err_terminal && !environment.no_color,
       .terminal = environment.err_terminal && environment.out_terminal});
  const bool interactive = environment.in_terminal && environment.out_terminal;
  const auto input = interactive ? MakeTerminalReader() : MakeStreamReader(environment.in);
  Connection connection(options.server);
  Client client{.connection = connection,
                .output = output,
                .input = *input,
                .interactive = interactive,
                .user = options.user};
  const base::Status status = command(client);
  if (status.ok()) return kOk;
  PrintFailure(status, output);
  return IsUsageError(status) ? kUsage : kFailed;
}

}  // namespace kvasir::client

// kvasir user show | erase

#include <memory>

#include "router/client/commands/commands.h"
#include "router/client/render.h"

namespace kvasir::client {
namespace {

base::Status ShowUser(Client& client) {
  v1::GetUserRequest request;
  request.set_name(client.UserName());
  KVASIR_ASSIGN_OR_RETURN(
      const auto user,
      client.connection.Call(client.connection.users(), &v1::UserService::Stub::GetUser, request));
  if (client.output.json()) {
    client.output.out() << ToJson(user) << "\n";
    return base::OkStatus();
  }
  client.output.out() << RenderFields(client.output,
                                      {{"name", user.name()},
                                       {"sessions", fmt::format("{}", user.session_count())},
                                       {"memories", fmt::format("{}", user.memory_count())},
                                       {"stored", BytesText(user.state_bytes())},
                                       {"first used", TimeText(user.create_time())}});
  return base::OkStatus();
}

// Asks on a terminal. Errors: InvalidArgument (nobody can be asked), Cancelled (the answer was no).
base::Status Confirm(Client& client) {
  if (!client.interactive) {
    return base::InvalidArgument(
        "nothing was erased: there is no terminal to ask on; to erase {} for good, add --yes",
        client.UserName());
  }
  client.output.notes() << "This removes every session and memory of " << client.UserName()
                        << " for good.\n";
  const auto answer = client.input.Read("Type the user's name to go on: ");
  if (answer && *answer == client.user) return base::OkStatus();
  return base::Cancelled("nothing was erased");
}

base::Status EraseUser(Client& client, bool yes) {
  if (!yes) KVASIR_RETURN_IF_ERROR(Confirm(client));
  v1::EraseUserRequest request;
  request.set_name(client.UserName());
  KVASIR_ASSIGN_OR_RETURN(auto operation,
                          client.connection.Call(client.connection.users(),
                                                 &v1::UserService::Stub::EraseUser, request));
  KVASIR_ASSIGN_OR_RETURN(const auto done, WaitUntilDone(client, std::move(operation), "erasing"));
  v1::Erasure erasure;
  if (!done.response().UnpackTo(&erasure)) {
    return base::DataLoss("{} is done without an erasure as its response", done.name());
  }
  client.output.out() << (client.output.json() ? ToJson(erasure) + "\n"
                                               : Render(client.output, erasure));
  return base::OkStatus();
}

}  // namespace

void AddUserCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = app.add_subcommand("user", "show or erase the user");
  group->require_subcommand(1);
  group->add_subcommand("show", "what is kept of the user")->callback([&chosen] {
    chosen = ShowUser;
  });
  const auto yes = std::make_shared<bool>(false);
  CLI::App* erase = group->add_subcommand("erase", "remove everything of the user for good");
  erase->add_flag("--yes", *yes, "do not ask; needed where there is no terminal");
  erase->callback(
      [&chosen, yes] { chosen = [yes](Client& client) { return EraseUser(client, *yes); }; });
}

}  // namespace kvasir::client

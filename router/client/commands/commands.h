// The commands of kvasir: each Add… hangs one on the command line.
//
// When its arguments parse, the command is put into `chosen`; main runs it with a Client.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "engine/base/status.h"
#include "router/client/client.h"

namespace kvasir::client {

using Command = std::function<base::Status(Client&)>;

void AddChatCommand(CLI::App& app, Command& chosen);
void AddSessionCommands(CLI::App& app, Command& chosen);
void AddMemoryCommands(CLI::App& app, Command& chosen);
void AddUserCommands(CLI::App& app, Command& chosen);
void AddAdminCommands(CLI::App& app, Command& chosen);  // doctor, stats

}  // namespace kvasir::client

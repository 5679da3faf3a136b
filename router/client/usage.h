// Usage: what is wrong with a command line, in the words of its user; help and choices.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "router/client/commands/commands.h"

namespace kvasir::client {

// One line about `error`, thrown while `app` parsed: an unknown command or option is named with the
// nearest one there is.
std::string UsageMessage(const CLI::App& app, const CLI::ParseError& error);

// kvasir help [COMMAND…]. `app` must outlive `chosen`.
void AddHelpCommand(CLI::App& app, Command& chosen);

// True for HOST:PORT with a port from 1 to 65535; a host with colons stands in brackets.
bool IsHostAndPort(const std::string& text);

// An option whose text is one of `choices`. `value` must outlive the parsing.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const std::string& flags, const std::string& help,
                       const std::vector<std::pair<std::string, T>>& choices, T* value) {
  const auto set = [choices, value](const std::string& text) {
    for (const auto& [name, choice] : choices) {
      if (name == text) *value = choice;
    }
  };
  const auto check = [choices](const std::string& text) -> std::string {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.push_back(choice.first);
    if (std::ranges::find(names, text) != names.end()) return "";
    return fmt::format("'{}' is none of {}", text, fmt::join(names, ", "));
  };
  return app.add_option_function<std::string>(flags, set, help)->check(check);
}

}  // namespace kvasir::client

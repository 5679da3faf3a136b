#include "router/client/usage.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "router/names/nearest_name.h"

namespace kvasir::client {
namespace {

// The command that was reached.
const CLI::App& Reached(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Long names of the options of `app` and of the commands around it.
std::vector<std::string> OptionsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// "kvasir session show".
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

std::string WithSuggestion(const std::string& what, const std::string& name,
                           const std::vector<std::string>& names, const CLI::App& at) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = names::NearestName(name, views);
  if (!near.empty()) return fmt::format("{} '{}'; did you mean '{}'?", what, name, near);
  return fmt::format("{} '{}'; `{} --help` lists what there is", what, name, FullName(at));
}

std::string Unknown(const CLI::App& at, const std::string& argument) {
  if (argument.starts_with("-")) {
    return WithSuggestion("unknown option", argument.substr(0, argument.find('=')), OptionsOf(at),
                          at);
  }
  const std::vector<std::string> commands = CommandsOf(at);
  if (!commands.empty()) return WithSuggestion("no command", argument, commands, at);
  return fmt::format("'{}' is one argument too many; a text of several words stands in quotes",
                     argument);
}

base::Status PrintHelp(const CLI::App& app, const std::vector<std::string>& words,
                       std::ostream& out) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto found =
        at->get_subcommands([&](const CLI::App* command) { return command->get_name() == word; });
    if (found.empty()) {
      return base::InvalidArgument("{}", WithSuggestion("no command", word, CommandsOf(*at), *at));
    }
    at = found.front();
  }
  // App::help would describe the command that was reached, which is `help`.
  out << at->get_formatter()->make_help(at, FullName(*at), CLI::AppFormatMode::Normal);
  return base::OkStatus();
}

}  // namespace

std::string UsageMessage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& at = Reached(app);
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) return Unknown(at, unknown.front());
  const std::vector<std::string> commands = CommandsOf(at);
  if (commands.empty()) {
    return fmt::format("{}; `{} --help` says more", error.what(), FullName(at));
  }
  if (error.get_name() != "RequiredError") return error.what();
  return fmt::format("say which: `{} COMMAND`, one of {}; `{} --help` explains them", FullName(at),
                     fmt::join(commands, ", "), FullName(at));
}

void AddHelpCommand(CLI::App& app, Command& chosen) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = app.add_subcommand("help", "this text, or that of a command");
  help->add_option("COMMAND", *words, "such as: session show");
  help->callback([&app, &chosen, words] {
    chosen = [&app, words](Client& client) { return PrintHelp(app, *words, client.output.out()); };
  });
}

bool IsHostAndPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (!bracketed && host.find(':') != std::string::npos) return false;
  int port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  return error == std::errc() && rest == end && port >= 1 && port <= 65535;
}

}  // namespace kvasir::client

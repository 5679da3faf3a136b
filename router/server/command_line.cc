#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>

#include "engine/base/file.h"
#include "router/names/nearest_name.h"
#include "router/server/config.h"
#include "router/server/option_table.h"

namespace kvasir::server {
namespace {

// Help of one flag: meaning, bounds, default.
std::string HelpOf(const OptionKey& key) {
  const Options defaults;
  if (const auto* number = std::get_if<int64_t Options::*>(&key.member)) {
    return fmt::format("{} [{} to {}, default {}]", key.help, key.min, key.max, defaults.**number);
  }
  const auto& text = defaults.*std::get<std::string Options::*>(key.member);
  std::string help(key.help);
  if (!key.choices.empty()) help += fmt::format(" ({})", key.choices);
  if (!text.empty()) help += fmt::format(" [default {}]", text);
  return help;
}

// The message for arguments that no flag took.
base::Status UnknownArgument(const std::string& argument) {
  const size_t equals = std::min(argument.find('='), argument.size());
  const std::string name = argument.substr(0, equals);
  std::vector<std::string> flags = {"--config", "--help", "--version"};
  for (const OptionKey& key : OptionKeys()) flags.push_back(FlagOf(key));
  const std::vector<std::string_view> views(flags.begin(), flags.end());
  const std::string near = name.starts_with("-") ? names::NearestName(name, views) : "";
  if (near.empty()) return base::InvalidArgument("unknown argument '{}'; see --help", argument);
  return base::InvalidArgument("unknown flag '{}'; did you mean '{}'?", name, near);
}

// Texts of the flags that were given, by key.
using Given = std::map<std::string_view, std::string>;

base::Status Apply(const std::string& config, const Given& given, Options* options) {
  if (!config.empty()) {
    KVASIR_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(config, kConfigBytesMax));
    KVASIR_RETURN_IF_ERROR(ApplyConfigText(text, config, options));
  }
  for (const OptionKey& key : OptionKeys()) {
    const auto found = given.find(key.name);
    if (found != given.end()) KVASIR_RETURN_IF_ERROR(SetFromFlag(key, found->second, options));
  }
  return CheckOptions(*options);
}

}  // namespace

base::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             std::string_view version) {
  CLI::App app(
      "kvasird: serves a language model with a memory per user.\n"
      "Every flag is also a key of the TOML file, with '_' for '-'; a flag wins.",
      "kvasird");
  std::string config;
  bool show_version = false;
  Given given;
  app.allow_extras();
  app.add_option("--config", config, "TOML file");
  app.add_flag("--version", show_version, "print the version and stop");
  for (const OptionKey& key : OptionKeys()) {
    app.add_option_function<std::string>(
        FlagOf(key), [&given, name = key.name](const std::string& text) { given[name] = text; },
        HelpOf(key));
  }
  CommandLine result;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    result.print = app.help();
    return result;
  } catch (const CLI::ParseError& error) {
    return base::InvalidArgument("{}", error.what());
  }
  if (show_version) {
    result.print = fmt::format("kvasird {}\n", version);
    return result;
  }
  const auto extras = app.remaining();
  if (!extras.empty()) return UnknownArgument(extras.front());
  KVASIR_RETURN_IF_ERROR(Apply(config, given, &result.options));
  return result;
}

}  // namespace kvasir::server

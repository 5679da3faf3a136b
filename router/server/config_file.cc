#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <string>

#include "absl/strings/ascii.h"
#include "router/server/config.h"
#include "router/server/option_table.h"

namespace kvasir::server {
namespace {

std::string PlaceIn(std::string_view where, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", where, region.begin.line, region.begin.column);
}

base::Status ApplyValue(const OptionKey& key, const toml::node& node, Options* options) {
  if (const auto* number = node.as_integer()) return SetNumber(key, number->get(), options);
  if (const auto* text = node.as_string()) return SetText(key, text->get(), options);
  return base::InvalidArgument("{} must be a text or a whole number", key.name);
}

const OptionKey* FindKey(std::string_view name) {
  for (const OptionKey& key : OptionKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

// Refuses tables, arrays and dates, which no key takes and at some of which toml++ 3.3 aborts
// ("[[[", "a=1979-05-27 1 #"): a bracket, a brace or a hyphen behind a digit outside quotes and
// comments, or in a later line of a text of several lines.
base::Status CheckFlat(std::string_view text, std::string_view where) {
  char quote = 0;
  int line = 1, column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    ++column;
    if (c == '\n') {
      quote = 0;
      ++line;
      column = 0;
    } else if (quote == '#') {
      continue;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
      if (c == '\\' && quote == '"' && i + 1 < text.size() && text[i + 1] != '\n') ++i, ++column;
    } else if (c == '"' || c == '\'' || c == '#') {
      quote = c;
    } else if (c == '[' || c == '{' || (c == '-' && i > 0 && absl::ascii_isdigit(text[i - 1]))) {
      return base::InvalidArgument("{}:{}:{}: tables, arrays and dates are not allowed", where,
                                   line, column);
    }
  }
  return base::OkStatus();
}

}  // namespace

base::Status ApplyConfigText(std::string_view text, std::string_view where, Options* options) {
  KVASIR_RETURN_IF_ERROR(CheckFlat(text, where));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return base::InvalidArgument("{}: {}", PlaceIn(where, parsed.error().source()),
                                 parsed.error().description());
  }
  for (const auto& [name, node] : parsed.table()) {
    const std::string place = PlaceIn(where, name.source());
    const OptionKey* key = FindKey(name.str());
    if (key == nullptr) return UnknownKey(name.str(), place);
    KVASIR_RETURN_IF_ERROR(base::Annotate(ApplyValue(*key, node, options), place));
  }
  return base::OkStatus();
}

}  // namespace kvasir::server

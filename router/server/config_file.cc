#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <string>

#include "router/server/config.h"
#include "router/server/option_table.h"

namespace kvasir::server {
namespace {

std::string Place(std::string_view where, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", where, region.begin.line, region.begin.column);
}

base::Status ApplyValue(const OptionKey& key, const toml::node& node, Options* options) {
  if (const auto* number = node.as_integer()) return SetNumber(key, number->get(), options);
  if (const auto* text = node.as_string()) return SetText(key, text->get(), options);
  return base::InvalidArgument("{} must be a text or a whole number", key.name);
}

const OptionKey* Find(std::string_view name) {
  for (const OptionKey& key : OptionKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace

base::Status ApplyConfigText(std::string_view text, std::string_view where, Options* options) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return base::InvalidArgument("{}: {}", Place(where, parsed.error().source()),
                                 parsed.error().description());
  }
  for (const auto& [name, node] : parsed.table()) {
    const std::string place = Place(where, name.source());
    const OptionKey* key = Find(name.str());
    if (key == nullptr) return UnknownKey(name.str(), place);
    KVASIR_RETURN_IF_ERROR(base::Annotate(ApplyValue(*key, node, options), place));
  }
  return base::OkStatus();
}

}  // namespace kvasir::server

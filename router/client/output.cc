#include "router/client/output.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>

#include "engine/base/check.h"

namespace kvasir::client {
namespace {

const char* CodeOf(Tint tint) {
  switch (tint) {
    case Tint::kNone:
      return "";
    case Tint::kBold:
      return "1";
    case Tint::kDim:
      return "2";
    case Tint::kRed:
      return "31";
    case Tint::kGreen:
      return "32";
    case Tint::kYellow:
      return "33";
  }
  return "";
}

bool StartsCharacter(char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }

// Characters of UTF-8 text, each counted as one column.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, StartsCharacter));
}

std::string Padded(const std::string& cell, size_t width, bool right) {
  const std::string space(width - std::min(width, Width(cell)), ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

std::string Output::Paint(Tint tint, std::string_view text) const {
  if (!style_.color || tint == Tint::kNone) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", CodeOf(tint), text);
}

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  KVASIR_CHECK(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
  return json;
}

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xa0;
    if (c1) ++i;  // U+0080 to U+009F
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    if (!c1 && !control) clean.push_back(text[i]);
  }
  return clean;
}

std::string OneLine(std::string_view text, size_t width) {
  std::string line = Printable(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (Width(line) <= width) return line;
  size_t characters = 0;
  const auto end = std::ranges::find_if(
      line, [&](char c) { return StartsCharacter(c) && ++characters == width; });
  return std::string(line.begin(), end) + "…";
}

std::string RenderTable(const Output& output, const std::vector<Column>& header,
                        const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  std::vector<std::string> names;
  for (size_t c = 0; c < header.size(); ++c) {
    names.push_back(header[c].name);
    widths.push_back(Width(names[c]));
    for (const auto& row : rows) widths[c] = std::max(widths[c], Width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t c = 0; c < cells.size(); ++c) {
      text += (c == 0 ? "" : "  ") + Padded(cells[c], widths[c], header[c].number);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string table = output.Paint(Tint::kBold, line(names)) + "\n";
  for (const auto& row : rows) table += line(row) + "\n";
  return table;
}

std::string RenderFields(const Output& output,
                         const std::vector<std::pair<std::string, std::string>>& fields) {
  size_t width = 0;
  for (const auto& field : fields) width = std::max(width, Width(field.first));
  std::string text;
  for (const auto& [name, value] : fields) {
    text += output.Paint(Tint::kDim, Padded(name, width, false)) + "  " + value + "\n";
  }
  return text;
}

}  // namespace kvasir::client

// Output: where a command writes its result (`out`) and what is said on the way (`notes`).
//
// In the format kJson `out` gets one JSON document and nothing else.
#pragma once

#include <google/protobuf/message.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::client {

enum class Format { kTable, kJson };

// Colours of the terminal; kNone writes the text as it is.
enum class Tint { kNone, kBold, kDim, kRed, kGreen, kYellow };

struct OutputStyle {
  Format format = Format::kTable;
  bool color = false;     // write colours
  bool terminal = false;  // `notes` is a terminal: progress lines are welcome
};

class Output {
 public:
  // Keeps references to both streams.
  Output(std::ostream& out, std::ostream& notes, OutputStyle style)
      : out_(out), notes_(notes), style_(style) {}

  bool json() const { return style_.format == Format::kJson; }
  const OutputStyle& style() const { return style_; }
  std::ostream& out() { return out_; }
  std::ostream& notes() { return notes_; }
  // `text` in the colour, when colours are written.
  std::string Paint(Tint tint, std::string_view text) const;

 private:
  std::ostream& out_;
  std::ostream& notes_;
  const OutputStyle style_;
};

// The message as JSON on one line: field names as in the proto, fields at their default included.
std::string ToJson(const google::protobuf::Message& message);

// `text` without the control characters that could steer a terminal; line feed and tab stay.
std::string Printable(std::string_view text);
// As Printable, on one line of at most `width` characters.
std::string OneLine(std::string_view text, size_t width);

struct Column {
  std::string name;
  bool number = false;  // aligned to the right, header included
};

// Rows below a header in columns as wide as their widest cell.
std::string RenderTable(const Output& output, const std::vector<Column>& header,
                        const std::vector<std::vector<std::string>>& rows);
// Names and values in two columns.
std::string RenderFields(const Output& output,
                         const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace kvasir::client

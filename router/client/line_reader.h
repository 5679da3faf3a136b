// LineReader: lines that the user types.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

namespace kvasir::client {

class LineReader {
 public:
  virtual ~LineReader() = default;
  // The next line without its end; nothing at the end of the input. Ctrl-C drops what was typed and
  // asks again.
  virtual std::optional<std::string> Read(const std::string& prompt) = 0;
};

// From a terminal, with editing and the history of this run. The history is kept in memory only: a
// file of it would outlive what the user deletes.
std::unique_ptr<LineReader> MakeTerminalReader();

// From a stream, without a prompt. `in` must outlive the reader.
std::unique_ptr<LineReader> MakeStreamReader(std::istream& in);

}  // namespace kvasir::client

#include "router/client/line_reader.h"

#include <histedit.h>

#include <cerrno>
#include <cstdio>
#include <istream>

#include "engine/base/check.h"

namespace kvasir::client {
namespace {

constexpr int kHistoryLines = 1000;

class TerminalReader final : public LineReader {
 public:
  TerminalReader() : edit_(el_init("kvasir", stdin, stdout, stderr)), history_(history_init()) {
    KVASIR_CHECK(edit_ != nullptr && history_ != nullptr);
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &TerminalReader::Prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  }
  ~TerminalReader() override {
    history_end(history_);
    el_end(edit_);
  }

  std::optional<std::string> Read(const std::string& prompt) override {
    prompt_ = prompt;
    while (true) {
      int bytes = 0;
      errno = 0;
      const char* text = el_gets(edit_, &bytes);
      if (text != nullptr && bytes > 0) return Take(std::string(text, static_cast<size_t>(bytes)));
      if (errno != EINTR) {
        std::fputs("\n", stdout);
        return std::nullopt;
      }
      std::fputs("^C\n", stdout);
      el_reset(edit_);
    }
  }

 private:
  static char* Prompt(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<TerminalReader*>(self)->prompt_.data();
  }

  std::string Take(std::string line) {
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    HistEvent event;
    if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
    return line;
  }

  EditLine* const edit_;
  History* const history_;
  std::string prompt_;
};

class StreamReader final : public LineReader {
 public:
  explicit StreamReader(std::istream& in) : in_(in) {}
  std::optional<std::string> Read(const std::string&) override {
    std::string line;
    if (!std::getline(in_, line)) return std::nullopt;
    return line;
  }

 private:
  std::istream& in_;
};

}  // namespace

std::unique_ptr<LineReader> MakeTerminalReader() { return std::make_unique<TerminalReader>(); }

std::unique_ptr<LineReader> MakeStreamReader(std::istream& in) {
  return std::make_unique<StreamReader>(in);
}

}  // namespace kvasir::client

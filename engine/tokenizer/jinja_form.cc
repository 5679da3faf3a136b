#include "engine/tokenizer/jinja_form.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

namespace kvasir::tokenizer {
namespace {

using base::InvalidArgument;
using base::OkStatus;
using base::Status;

constexpr std::string_view kSpaces = " \t\r\n\f\v";

struct Token {
  enum class Kind : char {
    kText = 'T',    // outside tags
    kOpen = 'O',    // "{{" or "{%"
    kClose = 'C',   // their ends
    kString = 'S',  // a literal, without quotes, escapes resolved
    kName = 'N',    // name or number
    kSign = 'P',    // one character of anything else
  };
  Kind kind = Kind::kText;
  std::string text;
  bool Is(Kind k, std::string_view t) const { return kind == k && text == t; }
};

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view rest) : rest_(rest) {}

  base::StatusOr<std::vector<Token>> Run() {
    if (rest_.ends_with('\n')) rest_.remove_suffix(1);  // as Jinja does
    while (!rest_.empty()) {
      ReadText();
      if (!rest_.empty()) KVASIR_RETURN_IF_ERROR(ReadTag());
    }
    return std::move(tokens_);
  }

 private:
  void Skip(size_t n) { rest_.remove_prefix(n); }
  void SkipSpaces() { Skip(std::min(rest_.find_first_not_of(kSpaces), rest_.size())); }

  // Text up to the next tag, cut as "-" and lstrip_blocks ask.
  void ReadText() {
    size_t end = 0;
    while (end < rest_.size() && !IsTag(rest_.substr(end))) ++end;
    std::string_view text = rest_.substr(0, end);
    Skip(end);
    if (rest_.size() > 2 && rest_[2] == '-') {
      text = text.substr(0, text.find_last_not_of(kSpaces) + 1);
    } else if (!rest_.empty() && rest_[1] != '{') {
      const size_t line = text.find_last_not_of(" \t") + 1;
      const bool starts_line = line == 0 ? line_start_ : text[line - 1] == '\n';
      if (starts_line) text = text.substr(0, line);
    }
    if (!text.empty()) tokens_.push_back({Token::Kind::kText, std::string(text)});
  }

  static bool IsTag(std::string_view at) {
    return at.starts_with("{{") || at.starts_with("{%") || at.starts_with("{#");
  }

  Status ReadTag() {
    const char type = rest_[1];
    Skip(2);
    if (type == '#') {
      const size_t end = rest_.find("#}");
      if (end == std::string_view::npos) return InvalidArgument("a comment does not end");
      EndTag(end, end > 0 && rest_[end - 1] == '-', type);
      return OkStatus();
    }
    if (rest_.starts_with('-')) Skip(1);
    tokens_.push_back({Token::Kind::kOpen, std::string(1, type)});
    const std::string close{type == '{' ? '}' : '%', '}'};
    while (true) {
      SkipSpaces();
      if (rest_.empty()) return InvalidArgument("a tag does not end");
      const bool dash = rest_.starts_with("-" + close);
      if (dash || rest_.starts_with(close)) {
        tokens_.push_back({Token::Kind::kClose, std::string(1, type)});
        EndTag(dash ? 1 : 0, dash, type);
        return OkStatus();
      }
      KVASIR_RETURN_IF_ERROR(ReadWord());
    }
  }

  // Skips the end of a tag, `at` bytes ahead, and the white space that goes with it (trim_blocks).
  void EndTag(size_t at, bool dash, char type) {
    Skip(at + 2);
    line_start_ = false;
    if (dash) {
      SkipSpaces();
    } else if (type != '{' && rest_.starts_with('\n')) {
      Skip(1);
      line_start_ = true;
    }
  }

  Status ReadWord() {
    if (rest_[0] == '\'' || rest_[0] == '"') return ReadString(rest_[0]);
    size_t end = 0;
    while (end < rest_.size() && IsNameChar(rest_[end])) ++end;
    const auto kind = end > 0 ? Token::Kind::kName : Token::Kind::kSign;
    end = std::max<size_t>(end, 1);
    tokens_.push_back({kind, std::string(rest_.substr(0, end))});
    Skip(end);
    return OkStatus();
  }

  Status ReadString(char quote) {
    Token token{Token::Kind::kString, ""};
    size_t at = 1;
    for (; at < rest_.size() && rest_[at] != quote; ++at) {
      if (rest_[at] != '\\' || at + 1 == rest_.size()) {
        token.text += rest_[at];
        continue;
      }
      const char c = rest_[++at];
      if (c == 'n' || c == 't' || c == 'r') {
        token.text += c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
      } else {
        if (c != '\\' && c != '\'' && c != '"') token.text += '\\';
        token.text += c;
      }
    }
    if (at >= rest_.size()) return InvalidArgument("a string does not end");
    Skip(at + 1);
    tokens_.push_back(std::move(token));
    return OkStatus();
  }

  std::string_view rest_;
  bool line_start_ = true;  // what comes next starts a line
  std::vector<Token> tokens_;
};

using Kind = Token::Kind;

// m['x'] becomes m.x.
std::vector<Token> JoinSubscripts(std::vector<Token> in) {
  std::vector<Token> out;
  for (size_t i = 0; i < in.size(); ++i) {
    const bool subscript = !out.empty() && i + 2 < in.size() && in[i].Is(Kind::kSign, "[") &&
                           in[i + 1].kind == Kind::kString && in[i + 2].Is(Kind::kSign, "]") &&
                           (out.back().kind == Kind::kName || out.back().Is(Kind::kSign, "]"));
    if (!subscript) {
      out.push_back(std::move(in[i]));
      continue;
    }
    out.push_back({Kind::kSign, "."});
    out.push_back({Kind::kName, std::move(in[i + 1].text)});
    i += 2;
  }
  return out;
}

// 'a' + 'b' becomes 'ab' where no operator binds tighter than the plus.
std::vector<Token> JoinStrings(std::vector<Token> in) {
  const auto before = [](const Token& t) {
    return t.kind == Kind::kOpen || t.Is(Kind::kSign, "+") || t.Is(Kind::kSign, "(") ||
           t.Is(Kind::kSign, "=");
  };
  const auto after = [](const Token& t) {
    return t.kind == Kind::kClose || t.Is(Kind::kSign, "+") || t.Is(Kind::kSign, ")");
  };
  std::vector<Token> out;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t n = out.size();
    const bool joins = n >= 3 && i + 1 < in.size() && in[i].kind == Kind::kString &&
                       out[n - 1].Is(Kind::kSign, "+") && out[n - 2].kind == Kind::kString &&
                       before(out[n - 3]) && after(in[i + 1]);
    if (!joins) {
      out.push_back(std::move(in[i]));
      continue;
    }
    out.pop_back();
    out.back().text += in[i].text;
  }
  return out;
}

// Takes the default system message out of the literals: the same text everywhere, or it stays.
std::optional<std::string> TakeDefaultSystem(std::vector<Token>& tokens) {
  constexpr std::string_view kBefore = "<|im_start|>system\n";
  constexpr std::string_view kAfter = "<|im_end|>\n";
  std::optional<std::string> found;
  for (Token& token : tokens) {
    const std::string_view text = token.text;
    if (token.kind != Kind::kString || text.size() <= kBefore.size() + kAfter.size()) continue;
    if (!text.starts_with(kBefore) || !text.ends_with(kAfter)) continue;
    std::string inner(text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size()));
    if (found && *found != inner) continue;
    token.text = std::string(kBefore) + '\0' + std::string(kAfter);
    found = std::move(inner);
  }
  for (Token& token : tokens)
    if (found && token.Is(Kind::kString, *found)) token.text = std::string(1, '\0');
  return found;
}

}  // namespace

base::StatusOr<JinjaForm> FormOf(std::string_view jinja) {
  if (jinja.size() > JinjaForm::kTemplateBytesMax)
    return InvalidArgument("{} bytes, at most {} are supported", jinja.size(),
                           JinjaForm::kTemplateBytesMax);
  KVASIR_ASSIGN_OR_RETURN(std::vector<Token> tokens, Lexer(jinja).Run());
  tokens = JoinStrings(JoinSubscripts(std::move(tokens)));
  JinjaForm form;
  form.default_system = TakeDefaultSystem(tokens);
  base::Hasher hasher;
  for (const Token& token : tokens) {
    hasher.AddInt(static_cast<int64_t>(token.kind));
    hasher.AddText(token.text);
  }
  form.digest = hasher.Finish();
  return form;
}

}  // namespace kvasir::tokenizer

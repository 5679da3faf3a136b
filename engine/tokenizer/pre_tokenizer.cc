#include "engine/tokenizer/pre_tokenizer.h"

#include <unicode/uchar.h>

#include <array>

#include "engine/tokenizer/utf8.h"

namespace kvasir::tokenizer {
namespace {

enum class Class { kEnd, kLetter, kNumber, kSpace, kSymbol };

struct Char {
  Class cls = Class::kEnd;
  char32_t value = 0;  // 0 for ill-formed bytes and the end
  size_t bytes = 0;
  bool IsNewline() const { return value == '\r' || value == '\n'; }
};

Class ClassOf(char32_t value) {
  const uint32_t mask = U_GET_GC_MASK(static_cast<UChar32>(value));
  if (mask & U_GC_L_MASK) return Class::kLetter;
  if (mask & U_GC_N_MASK) return Class::kNumber;
  return u_isUWhiteSpace(static_cast<UChar32>(value)) ? Class::kSpace : Class::kSymbol;
}

// Reads code points of a text; positions are byte offsets.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  size_t size() const { return text_.size(); }
  Char At(size_t at) const {
    if (at >= text_.size()) return {};
    const Utf8Char c = ReadUtf8(text_.substr(at));
    if (c.kind != Utf8Char::Kind::kValid) return {Class::kSymbol, 0, 1};
    return {ClassOf(c.value), c.value, c.bytes};
  }
  // The first position from `at` on whose code point is not of class `cls`.
  size_t SkipClass(size_t at, Class cls) const {
    for (Char c = At(at); c.cls == cls; c = At(at)) at += c.bytes;
    return at;
  }
  size_t SkipNewlines(size_t at) const {
    while (At(at).IsNewline()) ++at;
    return at;
  }

 private:
  std::string_view text_;
};

enum class Case { kExact, kFold };

// `value` as the lower-case letter it may stand for in a contraction. U+017F (long s) folds to s.
char32_t Fold(char32_t value) {
  if (value == 0x17F) return 's';
  return value >= 'A' && value <= 'Z' ? value - 'A' + 'a' : value;
}

// The end of a contraction ('s 't 're 've 'm 'll 'd) that starts at the apostrophe at `at`, or `at`
// when there is none.
size_t SkipContraction(const Reader& reader, size_t at, Case letter_case) {
  if (reader.At(at).value != '\'') return at;
  const Char one = reader.At(at + 1);
  const Char two = reader.At(at + 1 + one.bytes);
  const bool fold = letter_case == Case::kFold;
  const char32_t a = fold ? Fold(one.value) : one.value;
  const char32_t b = fold ? Fold(two.value) : two.value;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 1 + one.bytes;
  const bool pair = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
  return pair ? at + 1 + one.bytes + two.bytes : at;
}

// \s+(?!\S)|\s+ : a run of white space leaves its last character to what follows, unless it is the
// only one.
size_t SkipSpaces(const Reader& reader, size_t at) {
  size_t last = at;
  size_t end = at;
  for (Char c = reader.At(end); c.cls == Class::kSpace; c = reader.At(end)) {
    last = end;
    end += c.bytes;
  }
  return end == reader.size() || last == at ? end : last;
}

// The end of the last newline in the run of white space at `at`, or `at` when it has none.
size_t SkipToLastNewline(const Reader& reader, size_t at) {
  size_t end = at;
  for (Char c = reader.At(at); c.cls == Class::kSpace; c = reader.At(at)) {
    at += c.bytes;
    if (c.IsNewline()) end = at;
  }
  return end;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t NextGpt2(const Reader& reader, size_t at) {
  if (const size_t end = SkipContraction(reader, at, Case::kExact); end != at) return end;
  const size_t start = reader.At(at).value == ' ' ? at + 1 : at;
  const Class cls = reader.At(start).cls;
  if (cls != Class::kEnd && cls != Class::kSpace) return reader.SkipClass(start, cls);
  return SkipSpaces(reader, at);
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+
// |\s+(?!\S)|\s+
size_t NextLlama3(const Reader& reader, size_t at, int digits) {
  if (const size_t end = SkipContraction(reader, at, Case::kFold); end != at) return end;
  const Char first = reader.At(at);
  if (first.cls == Class::kLetter) return reader.SkipClass(at, Class::kLetter);
  if (first.cls == Class::kNumber) {
    size_t end = at;
    for (int i = 0; i < digits && reader.At(end).cls == Class::kNumber; ++i)
      end += reader.At(end).bytes;
    return end;
  }
  const Class second = reader.At(at + first.bytes).cls;
  if (!first.IsNewline() && second == Class::kLetter)
    return reader.SkipClass(at + first.bytes, Class::kLetter);
  if (first.cls == Class::kSymbol || (first.value == ' ' && second == Class::kSymbol))
    return reader.SkipNewlines(reader.SkipClass(at + first.bytes, Class::kSymbol));
  const size_t newline = SkipToLastNewline(reader, at);
  return newline != at ? newline : SkipSpaces(reader, at);
}

template <typename Next>
void SplitBy(std::string_view text, size_t offset, std::vector<size_t>& ends, Next next) {
  const Reader reader(text);
  for (size_t at = 0; at < text.size();) {
    at = next(reader, at);
    ends.push_back(offset + at);
  }
}

// Every number is a piece of its own; what lies between is cut as by GPT-2, as if it stood alone.
void SplitSmolLm(std::string_view text, std::vector<size_t>& ends) {
  const Reader reader(text);
  size_t start = 0;
  const auto finish = [&](size_t end) {
    SplitBy(text.substr(start, end - start), start, ends, NextGpt2);
  };
  for (size_t at = 0; at < text.size();) {
    const Char c = reader.At(at);
    if (c.cls == Class::kNumber) {
      finish(at);
      start = at + c.bytes;
      ends.push_back(start);
    }
    at += c.bytes;
  }
  finish(text.size());
}

}  // namespace

void SplitPieces(PreTokenizer pre, std::string_view text, std::vector<size_t>& ends) {
  ends.clear();
  switch (pre) {
    case PreTokenizer::kNone:
      if (!text.empty()) ends.push_back(text.size());
      return;
    case PreTokenizer::kGpt2:
      return SplitBy(text, 0, ends, NextGpt2);
    case PreTokenizer::kSmolLm:
      return SplitSmolLm(text, ends);
    case PreTokenizer::kLlamaBpe:
      return SplitBy(text, 0, ends,
                     [](const Reader& r, size_t at) { return NextLlama3(r, at, 3); });
    case PreTokenizer::kQwen2:
      return SplitBy(text, 0, ends,
                     [](const Reader& r, size_t at) { return NextLlama3(r, at, 1); });
  }
}

}  // namespace kvasir::tokenizer

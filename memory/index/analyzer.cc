#include "memory/index/analyzer.h"

#include <libstemmer.h>
#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "memory/index/stop_words.h"

namespace kvasir::index {
namespace {

struct DeleteStemmer {
  void operator()(sb_stemmer* stemmer) const { sb_stemmer_delete(stemmer); }
};
using StemmerPtr = std::unique_ptr<sb_stemmer, DeleteStemmer>;

struct CloseText {
  void operator()(UText* text) const { utext_close(text); }
};

// A word in lower case with plain apostrophes, at most kTermBytesMax bytes, cut between characters.
std::string Normalize(std::string_view word) {
  icu::UnicodeString text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(word.data(), static_cast<int32_t>(word.size())));
  text.toLower(icu::Locale::getRoot());
  text.findAndReplace(icu::UnicodeString(char16_t{0x2019}), icu::UnicodeString(u'\''));
  std::string out;
  text.toUTF8String(out);
  if (out.size() <= kTermBytesMax) return out;
  size_t end = kTermBytesMax;
  while (end > 0 && (static_cast<uint8_t>(out[end]) & 0xc0) == 0x80) --end;
  out.resize(end);
  return out;
}

std::string Stem(sb_stemmer* stemmer, const std::string& word) {
  const sb_symbol* stem = sb_stemmer_stem(stemmer, reinterpret_cast<const sb_symbol*>(word.data()),
                                          static_cast<int>(word.size()));
  if (stem == nullptr) return word;  // out of memory: the word itself still is a usable term
  return {reinterpret_cast<const char*>(stem),
          static_cast<size_t>(std::max(0, sb_stemmer_length(stemmer)))};
}

}  // namespace

// The iterator is a prototype: every call works on a clone of its own.
struct Analyzer::State {
  std::unique_ptr<icu::BreakIterator> words;
};

Analyzer::Analyzer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Analyzer::~Analyzer() = default;

base::StatusOr<std::unique_ptr<Analyzer>> Analyzer::Create() {
  UErrorCode error = U_ZERO_ERROR;
  auto state = std::make_unique<State>();
  state->words.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), error));
  if (U_FAILURE(error)) return base::Internal("ICU has no word boundaries: {}", u_errorName(error));
  if (StemmerPtr(sb_stemmer_new("english", "UTF_8")) == nullptr) {
    return base::Internal("libstemmer has no English stemmer");
  }
  return std::unique_ptr<Analyzer>(new Analyzer(std::move(state)));
}

TermCounts Analyzer::Analyze(std::string_view text) const {
  TermCounts counts;
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, CloseText> source(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error));
  const std::unique_ptr<icu::BreakIterator> words(state_->words->clone());
  const StemmerPtr stemmer(sb_stemmer_new("english", "UTF_8"));
  if (U_FAILURE(error) || words == nullptr || stemmer == nullptr) return counts;
  words->setText(source.get(), error);
  if (U_FAILURE(error)) return counts;
  int32_t begin = words->first();
  for (int32_t end = words->next(); end != icu::BreakIterator::DONE;
       begin = end, end = words->next()) {
    if (words->getRuleStatus() < UBRK_WORD_NONE_LIMIT) continue;  // spaces and punctuation
    const std::string word = Normalize(text.substr(begin, end - begin));
    if (word.empty() || IsStopWord(word)) continue;
    std::string term = Stem(stemmer.get(), word);
    if (term.empty()) continue;
    if (const auto found = counts.find(term); found != counts.end()) {
      ++found->second;
    } else if (counts.size() < kTermsMax) {
      counts.emplace(std::move(term), 1);
    }
  }
  return counts;
}

}  // namespace kvasir::index

// Analyzer: text to the terms of the lexical index: words by ICU's boundaries, lower case, without
// stop words, stemmed by Snowball's English stemmer. Documents and queries take the same way.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "engine/base/status.h"
#include "memory/index/term_counts.h"

namespace kvasir::index {

inline constexpr size_t kTermBytesMax = 64;  // a longer word counts as its first bytes
inline constexpr size_t kTermsMax =
    65536;  // distinct terms of one text; later new ones are left out

class Analyzer {
 public:
  // Errors: Internal (ICU's data or the stemmer is missing on this machine).
  static base::StatusOr<std::unique_ptr<Analyzer>> Create();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // Any bytes are accepted; what is no UTF-8 separates words. Complexity: linear.
  TermCounts Analyze(std::string_view text) const;

 private:
  struct State;
  explicit Analyzer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::index

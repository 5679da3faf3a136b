// UTF-8 one code point at a time. Well-formed is what Unicode 15, table 3-7 says: no overlong
// forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvasir::tokenizer {

struct Utf8Char {
  enum class Kind {
    kValid,
    kIllFormed,   // `bytes` is the maximal ill-formed part
    kIncomplete,  // well-formed as far as the text goes; more bytes could complete it
  };
  Kind kind = Kind::kIllFormed;
  char32_t value = 0;  // when valid
  size_t bytes = 1;
};

// What starts at text[0]. REQUIRES: text is not empty.
Utf8Char ReadUtf8(std::string_view text);

}  // namespace kvasir::tokenizer

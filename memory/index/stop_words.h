// Stop words: English function words that tell nothing about what a text is about. Internal.
#pragma once

#include <string_view>

namespace kvasir::index {

// `word`: lower case, with ' as its apostrophe.
bool IsStopWord(std::string_view word);

}  // namespace kvasir::index

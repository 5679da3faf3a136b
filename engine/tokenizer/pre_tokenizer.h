// Pre-tokenization: where byte-level BPE cuts text before it merges. Written by hand over Unicode
// categories, after the regular expressions published with GPT-2, Llama 3 and Qwen2; one pass,
// linear time, no backtracking.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "engine/tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// Writes the end offset of every piece of `text` to `ends` (cleared first); the pieces cover the
// text. A byte outside well-formed UTF-8 counts as a symbol: no letter, number or space.
void SplitPieces(PreTokenizer pre, std::string_view text, std::vector<size_t>& ends);

}  // namespace kvasir::tokenizer

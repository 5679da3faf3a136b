// CheckVocabulary: what must hold of a vocabulary before a tokenizer is made of it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "engine/base/status.h"
#include "engine/tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

// The id of every text; the keys are views into the vocabulary.
using TextIndex = absl::flat_hash_map<std::string_view, int32_t>;

// Checks everything but the merges, which MakeByteLevelBpe checks as it reads them.
// Errors: those of Tokenizer::Create(Vocabulary).
base::StatusOr<TextIndex> CheckVocabulary(const Vocabulary& vocabulary);

}  // namespace kvasir::tokenizer

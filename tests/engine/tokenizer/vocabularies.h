// Small vocabularies made by hand, for unit tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace kvasir::tokenizer {

// A byte-level vocabulary: ids 0..255 are the single bytes, in order; no merges.
Vocabulary ByteLevelVocabulary(PreTokenizer pre);

// A SentencePiece vocabulary: ids 0..2 are <unk>, <s>, </s>, ids 3..258 the byte tokens. `pieces`
// follow with descending scores. add_bos and add_space_prefix are false.
Vocabulary SentencePieceVocabulary(const std::vector<std::string>& pieces);

// Appends a token and returns its id.
int32_t AddToken(Vocabulary& vocabulary, std::string text, TokenType type, float score = 0);

// Appends the merge of two texts (in the byte alphabet) and, when it is new, the token it makes,
// whose id is returned.
int32_t AddMerge(Vocabulary& vocabulary, const std::string& left, const std::string& right);

// Stops the program when the vocabulary is refused.
std::unique_ptr<Tokenizer> MakeTokenizer(Vocabulary vocabulary);

// A byte-level tokenizer with "<|im_start|>" (256) and "<|im_end|>" (257) as control tokens.
std::unique_ptr<Tokenizer> MakeChatMlTokenizer();

}  // namespace kvasir::tokenizer

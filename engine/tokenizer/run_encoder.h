// RunEncoder: the merging half of a tokenizer, after special tokens have been cut out. Threads:
// immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/check_vocabulary.h"
#include "engine/tokenizer/vocabulary.h"

namespace kvasir::tokenizer {

class RunEncoder {
 public:
  virtual ~RunEncoder() = default;
  // Appends the ids of `run` (maybe empty) to `ids`. O(n log n).
  virtual void Encode(std::string_view run, std::vector<int32_t>& ids) const = 0;
};

// Encoders for a vocabulary of that algorithm, which passed CheckVocabulary with the result `ids`
// and outlives the encoder. Errors: InvalidArgument naming the merge (see Tokenizer::Create).
base::StatusOr<std::unique_ptr<RunEncoder>> MakeByteLevelBpe(const Vocabulary& vocabulary,
                                                             const TextIndex& ids);
std::unique_ptr<RunEncoder> MakeSentencePieceBpe(const Vocabulary& vocabulary, TextIndex ids);

// The bytes that a normal token of byte-level BPE stands for: its text read in the byte alphabet of
// GPT-2 (printable Latin-1 stands for itself, the other bytes for U+0100 onwards), or as it is
// where a character is not of that alphabet.
std::string ByteLevelBytes(std::string_view text);

}  // namespace kvasir::tokenizer

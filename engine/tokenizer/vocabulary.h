// Vocabulary: the tokenizer section of a model file as plain data.
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"
#include "engine/gguf/file.h"

namespace kvasir::tokenizer {

// Values are those of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,      // stands for text that has no token
  kControl = 3,      // never made from text unless special parsing is on
  kUserDefined = 4,  // made from its text always
  kUnused = 5,       // never made from text, stands for no text
  kByte = 6,         // one byte, written "<0xAB>"
};

// tokenizer.ggml.model.
enum class Algorithm : uint8_t {
  kByteLevelBpe,      // "gpt2": merges with ranks over bytes
  kSentencePieceBpe,  // "llama": merges by score over characters
};

// tokenizer.ggml.pre: how byte-level BPE cuts text before merging.
enum class PreTokenizer : uint8_t { kNone, kGpt2, kSmolLm, kLlamaBpe, kQwen2 };

struct Vocabulary {
  static constexpr size_t kTokensMax = size_t{1} << 22;
  static constexpr size_t kTokenBytesMax = 4096;

  Algorithm algorithm = Algorithm::kByteLevelBpe;
  PreTokenizer pre = PreTokenizer::kNone;
  std::vector<std::string>
      texts;                     // [tokens] as in the file (byte-level: in the GPT-2 byte alphabet)
  std::vector<TokenType> types;  // [tokens]
  std::vector<float> scores;     // [tokens] for SentencePiece, else empty
  std::vector<std::string> merges;  // "left right" by ascending rank, byte-level only
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  std::optional<int32_t> eot;
  std::optional<int32_t> unknown;
  bool add_bos = false;           // contexts start with bos
  bool add_space_prefix = false;  // SentencePiece: text is encoded with one space before it
};

// Reads the tokenizer.* keys of `file`. Missing token types mean kNormal. Copies; needs no tensors.
// That the entries fit together is checked by Tokenizer::Create. Errors: InvalidArgument, NotFound
// naming the key (missing, of another type, another length than the tokens, an id or
//         type out of range, an unknown algorithm or pre-tokenizer).
base::StatusOr<Vocabulary> ReadVocabulary(const gguf::File& file);

// Identity of the mapping text <-> ids: over everything in `vocabulary`.
base::Digest DigestOf(const Vocabulary& vocabulary);

// The byte "<0xAB>" stands for, or nothing when `text` is not exactly of that form.
std::optional<uint8_t> ParseByteToken(std::string_view text);

}  // namespace kvasir::tokenizer

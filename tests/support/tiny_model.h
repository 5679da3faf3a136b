// TinyModel: a complete small chat model made from a seed, so that tests of the engine and of whole
// servers need no download and run in seconds.
//
// Architecture llama, n_embd 256, 4 query and 2 KV heads of 64, n_ff 512, mixed block types;
// byte-level BPE ("smollm") over all 256 bytes with a few merges, ChatML control tokens and
// SmolLM2's chat template. It says nothing sensible, but its text depends on all of its context,
// is mostly ASCII and does not repeat one token.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/status.h"

namespace kvasir::testing {

struct TinyModelOptions {
  uint64_t seed = 1;
  int layers = 3;
  uint32_t context_tokens = 4096;
};

inline constexpr int32_t kTinyEndOfText = 0;  // <|endoftext|>
inline constexpr int32_t kTinyImStart = 1;    // <|im_start|>
inline constexpr int32_t kTinyImEnd = 2;      // <|im_end|>
// The token of byte b.
inline constexpr int32_t TinyByteToken(uint8_t b) { return 3 + b; }

// The GGUF file: equal options give equal bytes on every machine.
std::string MakeTinyModel(const TinyModelOptions& options);

// The model in a file of its own, in a new temporary directory that goes with the object.
class TinyModelFile {
 public:
  explicit TinyModelFile(const TinyModelOptions& options);
  ~TinyModelFile();
  TinyModelFile(const TinyModelFile&) = delete;
  TinyModelFile& operator=(const TinyModelFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string directory_;
  std::string path_;
};

}  // namespace kvasir::testing

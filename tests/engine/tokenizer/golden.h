// Golden data of the tokenizer: models by the short names of tests/golden/README.md, and its JSON
// lines.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::tokenizer {

struct Model {
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<Tokenizer> tokenizer;
};

// The model called `name` (smollm2, q05, gemma3) from the directory KVASIR_MODELS.
// Errors: NotFound with how to fetch it; those of File::Open and Tokenizer::Create.
base::StatusOr<Model> LoadModel(std::string_view name);

// The JSON lines of tests/golden/`path`. Stops the program when the file cannot be read.
std::vector<nlohmann::json> GoldenLines(const std::string& path);

// The bytes of hexadecimal digits.
std::string FromHex(std::string_view hex);

}  // namespace kvasir::tokenizer

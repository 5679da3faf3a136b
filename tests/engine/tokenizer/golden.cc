#include "tests/engine/tokenizer/golden.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/file.h"

namespace kvasir::tokenizer {

base::StatusOr<Model> LoadModel(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kFiles[] = {
      {"smollm2", "smollm2-135m-instruct-q4_1.gguf"},
      {"q05", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"},
      {"gemma3", "gemma-3-270m-q4_k_m.gguf"}};
  const char* directory = std::getenv("KVASIR_MODELS");
  if (directory == nullptr)
    return base::NotFound("KVASIR_MODELS is not set: run ./dev test, which fetches the models");
  for (const auto& [key, file_name] : kFiles) {
    if (key != name) continue;
    const std::string path = std::filesystem::path(directory) / file_name;
    if (!std::filesystem::exists(path))
      return base::NotFound("{} is missing: tests/golden/README.md names the source of {}", path,
                            name);
    Model model;
    KVASIR_ASSIGN_OR_RETURN(model.file, gguf::File::Open(path));
    KVASIR_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::Create(*model.file));
    return model;
  }
  return base::InvalidArgument("no golden model is called {}", name);
}

std::vector<nlohmann::json> GoldenLines(const std::string& path) {
  const auto text = base::ReadFile("tests/golden/" + path, size_t{1} << 30);
  KVASIR_CHECK(text.ok());
  std::vector<nlohmann::json> lines;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace kvasir::tokenizer

#include <fmt/format.h>

#include "engine/gguf/quote.h"
#include "engine/model/checks.h"

namespace kvasir::model {
namespace {

using base::Status;
using base::StatusOr;
using gguf::Array;
using gguf::File;
using gguf::Quote;

// The array `key` has elements of type T (called `elements` in the error) and n_vocab of them.
template <typename T>
Status CheckArray(const File& file, std::string_view key, std::string_view elements,
                  const Config& config) {
  auto array = file.GetArray(key);
  if (absl::IsNotFound(array.status())) {
    return base::InvalidArgument("{}", base::ToStd(array.status().message()));
  }
  KVASIR_RETURN_IF_ERROR(array.status());
  if (!std::holds_alternative<std::vector<T>>((*array)->values)) {
    return base::InvalidArgument("key {} is an array of another type, {} are needed", Quote(key),
                                 elements);
  }
  if (static_cast<int64_t>((*array)->size()) != config.n_vocab) {
    return base::InvalidArgument("key {} has {} entries, tensor 'token_embd.weight' has {} rows",
                                 Quote(key), (*array)->size(), config.n_vocab);
  }
  return base::OkStatus();
}

// The token id `key`, in [0, n_vocab); none when absent.
StatusOr<std::optional<int32_t>> ReadId(const File& file, std::string_view key,
                                        const Config& config) {
  if (!file.Has(key)) return std::optional<int32_t>();
  KVASIR_ASSIGN_OR_RETURN(const int64_t id, file.GetInt(key));
  if (id < 0 || id >= config.n_vocab) {
    return base::InvalidArgument("key {} is {}, the vocabulary has {} tokens", Quote(key), id,
                                 config.n_vocab);
  }
  return std::optional<int32_t>(static_cast<int32_t>(id));
}

}  // namespace

Status ReadVocabularyFacts(const File& file, Config& config) {
  constexpr std::string_view kModel = "tokenizer.ggml.model";
  constexpr std::string_view kScores = "tokenizer.ggml.scores";
  constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
  auto model = file.GetString(kModel);
  if (absl::IsNotFound(model.status())) {
    return base::InvalidArgument("{}", base::ToStd(model.status().message()));
  }
  KVASIR_RETURN_IF_ERROR(model.status());
  if (*model != "llama" && *model != "gpt2") {
    return base::Unimplemented("key {} is {}, supported are llama and gpt2", Quote(kModel),
                               Quote(*model));
  }
  KVASIR_RETURN_IF_ERROR(
      CheckArray<std::string_view>(file, "tokenizer.ggml.tokens", "strings", config));
  if (*model == "llama" || file.Has(kScores)) {
    KVASIR_RETURN_IF_ERROR(CheckArray<double>(file, kScores, "floats", config));
  }
  if (file.Has(kTypes)) {
    KVASIR_RETURN_IF_ERROR(CheckArray<int64_t>(file, kTypes, "signed integers", config));
  }
  for (const std::string_view key :
       {"tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id"}) {
    KVASIR_RETURN_IF_ERROR(ReadId(file, key, config).status());
  }
  KVASIR_ASSIGN_OR_RETURN(config.bos_id, ReadId(file, "tokenizer.ggml.bos_token_id", config));
  KVASIR_ASSIGN_OR_RETURN(config.eos_id, ReadId(file, "tokenizer.ggml.eos_token_id", config));
  return base::OkStatus();
}

}  // namespace kvasir::model

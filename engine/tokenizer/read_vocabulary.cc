// ReadVocabulary: the tokenizer.* keys of a GGUF file. Source: GGUF specification, "Tokenizer".
#include <limits>
#include <string_view>
#include <utility>
#include <variant>

#include "engine/gguf/quote.h"
#include "engine/tokenizer/vocabulary.h"

namespace kvasir::tokenizer {
namespace {

using base::InvalidArgument;
using base::OkStatus;
using base::Status;
using base::StatusOr;

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";

// The elements of the array `key` as T, one of the types of gguf::Array.
template <typename T>
StatusOr<const std::vector<T>*> Elements(const gguf::File& file, std::string_view key,
                                         std::string_view type) {
  KVASIR_ASSIGN_OR_RETURN(const gguf::Array* array, file.GetArray(key));
  const auto* values = std::get_if<std::vector<T>>(&array->values);
  if (values == nullptr) return InvalidArgument("{}: not an array of {}", key, type);
  return values;
}

Status ReadStrings(const gguf::File& file, std::string_view key, std::vector<std::string>& out) {
  KVASIR_ASSIGN_OR_RETURN(const auto* values, (Elements<std::string_view>(file, key, "strings")));
  out.assign(values->begin(), values->end());
  return OkStatus();
}

Status ReadAlgorithm(const gguf::File& file, Vocabulary& v) {
  KVASIR_ASSIGN_OR_RETURN(const std::string_view model, file.GetString("tokenizer.ggml.model"));
  if (model == "llama") {
    v.algorithm = Algorithm::kSentencePieceBpe;
    v.pre = PreTokenizer::kNone;
    return OkStatus();
  }
  if (model != "gpt2")
    return InvalidArgument("tokenizer.ggml.model: {} is not supported (gpt2 and llama are)",
                           gguf::Quote(model));
  v.algorithm = Algorithm::kByteLevelBpe;
  KVASIR_ASSIGN_OR_RETURN(const std::string_view pre, file.GetString("tokenizer.ggml.pre"));
  constexpr std::pair<std::string_view, PreTokenizer> kPreTokenizers[] = {
      {"gpt-2", PreTokenizer::kGpt2},
      {"smollm", PreTokenizer::kSmolLm},
      {"llama-bpe", PreTokenizer::kLlamaBpe},
      {"qwen2", PreTokenizer::kQwen2}};
  for (const auto& [name, value] : kPreTokenizers) {
    if (pre != name) continue;
    v.pre = value;
    return OkStatus();
  }
  return InvalidArgument(
      "tokenizer.ggml.pre: {} is not supported (gpt-2, smollm, llama-bpe and qwen2 are)",
      gguf::Quote(pre));
}

Status ReadTypes(const gguf::File& file, Vocabulary& v) {
  v.types.assign(v.texts.size(), TokenType::kNormal);
  if (!file.Has(kTypes)) return OkStatus();
  KVASIR_ASSIGN_OR_RETURN(const gguf::Array* array, file.GetArray(kTypes));
  if (array->size() != v.texts.size())
    return InvalidArgument("{}: {} types for {} tokens", kTypes, array->size(), v.texts.size());
  return std::visit(
      [&](const auto& values) -> Status {
        using T = typename std::decay_t<decltype(values)>::value_type;
        if constexpr (std::is_integral_v<T>) {
          for (size_t i = 0; i < values.size(); ++i) {
            if (values[i] < 1 || values[i] > 6)
              return InvalidArgument("{}[{}]: {}, outside 1..6", kTypes, i, values[i]);
            v.types[i] = static_cast<TokenType>(values[i]);
          }
          return OkStatus();
        } else {
          return InvalidArgument("{}: not an array of integers", kTypes);
        }
      },
      array->values);
}

Status ReadScores(const gguf::File& file, Vocabulary& v) {
  // Byte-level files may carry scores too. They mean nothing there, but must be of the right type.
  if (v.algorithm == Algorithm::kByteLevelBpe && !file.Has(kScores)) return OkStatus();
  KVASIR_ASSIGN_OR_RETURN(const auto* values, (Elements<double>(file, kScores, "floats")));
  if (values->size() != v.texts.size())
    return InvalidArgument("{}: {} scores for {} tokens", kScores, values->size(), v.texts.size());
  if (v.algorithm == Algorithm::kByteLevelBpe) return OkStatus();
  v.scores.reserve(values->size());
  for (const double score : *values) v.scores.push_back(static_cast<float>(score));
  return OkStatus();
}

Status ReadId(const gguf::File& file, std::string_view key, std::optional<int32_t>& id) {
  if (!file.Has(key)) return OkStatus();
  KVASIR_ASSIGN_OR_RETURN(const int64_t value, file.GetInt(key));
  if (value < 0 || value > std::numeric_limits<int32_t>::max())
    return InvalidArgument("{}: {}, outside 0..{}", key, value,
                           std::numeric_limits<int32_t>::max());
  id = static_cast<int32_t>(value);
  return OkStatus();
}

Status ReadFlag(const gguf::File& file, std::string_view key, bool& flag) {
  if (!file.Has(key)) return OkStatus();
  KVASIR_ASSIGN_OR_RETURN(flag, file.GetBool(key));
  return OkStatus();
}

Status ReadSpecial(const gguf::File& file, Vocabulary& v) {
  KVASIR_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.bos_token_id", v.bos));
  KVASIR_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eos_token_id", v.eos));
  KVASIR_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eot_token_id", v.eot));
  KVASIR_RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.unknown_token_id", v.unknown));
  // What absent flags mean: the convention of the families' own tokenizers.
  const bool sentencepiece = v.algorithm == Algorithm::kSentencePieceBpe;
  v.add_bos = v.bos.has_value() && (sentencepiece || v.pre == PreTokenizer::kLlamaBpe);
  KVASIR_RETURN_IF_ERROR(ReadFlag(file, "tokenizer.ggml.add_bos_token", v.add_bos));
  bool prefix = true;
  KVASIR_RETURN_IF_ERROR(ReadFlag(file, "tokenizer.ggml.add_space_prefix", prefix));
  v.add_space_prefix = sentencepiece && prefix;
  return OkStatus();
}

}  // namespace

StatusOr<Vocabulary> ReadVocabulary(const gguf::File& file) {
  Vocabulary v;
  KVASIR_RETURN_IF_ERROR(ReadAlgorithm(file, v));
  KVASIR_RETURN_IF_ERROR(ReadStrings(file, kTokens, v.texts));
  KVASIR_RETURN_IF_ERROR(ReadTypes(file, v));
  KVASIR_RETURN_IF_ERROR(ReadScores(file, v));
  if (v.algorithm == Algorithm::kByteLevelBpe)
    KVASIR_RETURN_IF_ERROR(ReadStrings(file, kMerges, v.merges));
  KVASIR_RETURN_IF_ERROR(ReadSpecial(file, v));
  return v;
}

}  // namespace kvasir::tokenizer

#include "engine/tokenizer/check_vocabulary.h"

#include <array>
#include <cmath>
#include <utility>

#include "engine/gguf/quote.h"

namespace kvasir::tokenizer {
namespace {

using base::InvalidArgument;
using base::OkStatus;
using base::Status;

Status CheckSizes(const Vocabulary& v) {
  const size_t n = v.texts.size();
  if (n == 0) return InvalidArgument("tokenizer.ggml.tokens: no tokens");
  if (n > Vocabulary::kTokensMax)
    return InvalidArgument("tokenizer.ggml.tokens: {} tokens, at most {} are supported", n,
                           Vocabulary::kTokensMax);
  if (v.types.size() != n)
    return InvalidArgument("tokenizer.ggml.token_type: {} types for {} tokens", v.types.size(), n);
  const size_t scores = v.algorithm == Algorithm::kSentencePieceBpe ? n : 0;
  if (v.scores.size() != scores)
    return InvalidArgument("tokenizer.ggml.scores: {} scores, {} expected for {} tokens",
                           v.scores.size(), scores, n);
  return OkStatus();
}

Status CheckTexts(const Vocabulary& v, TextIndex& ids) {
  ids.reserve(v.texts.size());
  for (size_t i = 0; i < v.texts.size(); ++i) {
    if (v.texts[i].size() > Vocabulary::kTokenBytesMax)
      return InvalidArgument("tokenizer.ggml.tokens[{}]: {} bytes, at most {} are supported", i,
                             v.texts[i].size(), Vocabulary::kTokenBytesMax);
    const auto [other, added] = ids.emplace(v.texts[i], static_cast<int32_t>(i));
    if (!added)
      return InvalidArgument("tokenizer.ggml.tokens[{}]: the text {} is token {} already", i,
                             gguf::Quote(v.texts[i]), other->second);
  }
  return OkStatus();
}

Status CheckTypes(const Vocabulary& v) {
  std::array<bool, 256> seen{};
  for (size_t i = 0; i < v.types.size(); ++i) {
    const auto type = static_cast<int>(v.types[i]);
    if (type < 1 || type > 6)
      return InvalidArgument("tokenizer.ggml.token_type[{}]: {}, outside 1..6", i, type);
    if (v.types[i] != TokenType::kByte) continue;
    const std::optional<uint8_t> byte = ParseByteToken(v.texts[i]);
    if (!byte)
      return InvalidArgument(
          "tokenizer.ggml.tokens[{}]: byte token {}, expected '<0x00>' to '<0xFF>'", i,
          gguf::Quote(v.texts[i]));
    if (seen[*byte])  // "<0xAB>" beside "<0xab>"
      return InvalidArgument("tokenizer.ggml.tokens[{}]: byte {} has a token already", i, *byte);
    seen[*byte] = true;
  }
  if (v.algorithm != Algorithm::kByteLevelBpe && !v.merges.empty())
    return InvalidArgument("tokenizer.ggml.merges: {} merges for a SentencePiece vocabulary",
                           v.merges.size());
  for (size_t i = 0; i < v.scores.size(); ++i)
    if (!std::isfinite(v.scores[i]))
      return InvalidArgument("tokenizer.ggml.scores[{}]: {} is not finite", i, v.scores[i]);
  return OkStatus();
}

Status CheckIds(const Vocabulary& v) {
  const auto check = [&](std::string_view name, std::optional<int32_t> id) {
    if (!id || (*id >= 0 && static_cast<size_t>(*id) < v.texts.size())) return OkStatus();
    return InvalidArgument("tokenizer.ggml.{}_token_id: {}, the vocabulary has {} tokens", name,
                           *id, v.texts.size());
  };
  KVASIR_RETURN_IF_ERROR(check("bos", v.bos));
  KVASIR_RETURN_IF_ERROR(check("eos", v.eos));
  KVASIR_RETURN_IF_ERROR(check("eot", v.eot));
  KVASIR_RETURN_IF_ERROR(check("unknown", v.unknown));
  if (v.add_bos && !v.bos)
    return InvalidArgument(
        "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing");
  return OkStatus();
}

}  // namespace

base::StatusOr<TextIndex> CheckVocabulary(const Vocabulary& vocabulary) {
  TextIndex ids;
  KVASIR_RETURN_IF_ERROR(CheckSizes(vocabulary));
  KVASIR_RETURN_IF_ERROR(CheckTexts(vocabulary, ids));
  KVASIR_RETURN_IF_ERROR(CheckTypes(vocabulary));
  KVASIR_RETURN_IF_ERROR(CheckIds(vocabulary));
  return ids;
}

}  // namespace kvasir::tokenizer

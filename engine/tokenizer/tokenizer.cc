#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/check.h"
#include "engine/tokenizer/check_vocabulary.h"
#include "engine/tokenizer/run_encoder.h"
#include "engine/tokenizer/special_matcher.h"

namespace kvasir::tokenizer {
namespace {

// Control tokens that end a turn, in the families this project writes.
constexpr std::array<std::string_view, 4> kTurnEnds = {"<|im_end|>", "<|eot_id|>", "<end_of_turn>",
                                                       "<|end|>"};
// Control tokens that end a text or hand over to a tool.
constexpr std::array<std::string_view, 5> kTextEnds = {"<|endoftext|>", "<|end_of_text|>",
                                                       "<|eom_id|>", "</s>", "<eos>"};

// The bytes of token `i`.
std::string BytesOf(const Vocabulary& v, size_t i) {
  const std::string& text = v.texts[i];
  switch (v.types[i]) {
    case TokenType::kUnused:
      return "";
    case TokenType::kByte:
      return std::string(1, static_cast<char>(*ParseByteToken(text)));
    case TokenType::kNormal:
      break;
    default:
      return text;
  }
  if (v.algorithm == Algorithm::kByteLevelBpe) return ByteLevelBytes(text);
  constexpr std::string_view kSpaceMark = "\u2581";
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const bool space = std::string_view(text).substr(at, kSpaceMark.size()) == kSpaceMark;
    bytes += space ? ' ' : text[at];
    at += space ? kSpaceMark.size() : 1;
  }
  return bytes;
}

}  // namespace

struct Tokenizer::State {
  Vocabulary vocabulary;  // without its merges, which live in the encoder
  base::Digest digest;
  std::string bytes;            // of all tokens, one after another
  std::vector<size_t> offsets;  // [tokens + 1] into bytes
  std::vector<bool> ends;       // [tokens] generation stops here
  SpecialMatcher control;       // control and unknown tokens
  SpecialMatcher user_defined;
  std::unique_ptr<RunEncoder> encoder;

  bool IsControl(size_t id) const {
    const TokenType type = vocabulary.types[id];
    return type == TokenType::kControl || type == TokenType::kUnknown;
  }
  void ReadTokens();
  void FindEnds();
  void EncodeRun(std::string_view run, std::vector<int32_t>& ids) const;
};

void Tokenizer::State::ReadTokens() {
  for (size_t i = 0; i < vocabulary.texts.size(); ++i) {
    offsets.push_back(bytes.size());
    bytes += BytesOf(vocabulary, i);
    const auto id = static_cast<int32_t>(i);
    if (IsControl(i)) control.Add(vocabulary.texts[i], id);
    if (vocabulary.types[i] == TokenType::kUserDefined) user_defined.Add(vocabulary.texts[i], id);
  }
  offsets.push_back(bytes.size());
}

void Tokenizer::State::FindEnds() {
  ends.assign(vocabulary.texts.size(), false);
  const auto mark = [&](std::optional<int32_t> id) {
    if (id) ends[static_cast<size_t>(*id)] = true;
  };
  for (const std::string_view text : kTurnEnds) {
    const std::optional<int32_t> id = control.FindWhole(text);
    if (!vocabulary.eot) vocabulary.eot = id;
    mark(id);
  }
  for (const std::string_view text : kTextEnds) mark(control.FindWhole(text));
  mark(vocabulary.eos);
  mark(vocabulary.eot);
}

// A text without control tokens: user-defined ones are cut out, the rest is merged.
void Tokenizer::State::EncodeRun(std::string_view run, std::vector<int32_t>& ids) const {
  size_t at = 0;
  while (const auto match = user_defined.FindNext(run, at)) {
    encoder->Encode(run.substr(at, match->begin - at), ids);
    ids.push_back(match->id);
    at = match->end;
  }
  encoder->Encode(run.substr(at), ids);
}

base::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(const gguf::File& file) {
  KVASIR_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(file));
  return Create(std::move(vocabulary));
}

base::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(Vocabulary vocabulary) {
  auto state = std::make_unique<State>();
  state->vocabulary = std::move(vocabulary);
  const Vocabulary& v = state->vocabulary;
  KVASIR_ASSIGN_OR_RETURN(TextIndex ids, CheckVocabulary(v));
  if (v.algorithm == Algorithm::kByteLevelBpe) {
    KVASIR_ASSIGN_OR_RETURN(state->encoder, MakeByteLevelBpe(v, ids));
  } else {
    state->encoder = MakeSentencePieceBpe(v, std::move(ids));
  }
  state->digest = DigestOf(v);
  state->vocabulary.merges = {};
  state->ReadTokens();
  state->FindEnds();
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(state)));
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::Encode(std::string_view text, SpecialTokens special) const {
  const TextPart part{text, special};
  return EncodeParts({&part, 1});
}

std::vector<int32_t> Tokenizer::EncodeParts(std::span<const TextPart> parts) const {
  std::vector<int32_t> ids;
  std::string run;
  for (const TextPart& part : parts) {
    size_t at = 0;
    while (part.special == SpecialTokens::kParse) {
      const auto match = state_->control.FindNext(part.text, at);
      if (!match) break;
      run += part.text.substr(at, match->begin - at);
      state_->EncodeRun(run, ids);
      run.clear();
      ids.push_back(match->id);
      at = match->end;
    }
    run += part.text.substr(at);
  }
  state_->EncodeRun(run, ids);
  return ids;
}

std::string_view Tokenizer::TokenBytes(int32_t id) const {
  KVASIR_CHECK(IsValid(id));
  const size_t begin = state_->offsets[static_cast<size_t>(id)];
  const size_t end = state_->offsets[static_cast<size_t>(id) + 1];
  return std::string_view(state_->bytes).substr(begin, end - begin);
}

std::string Tokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  bool first = true;  // of the text or behind a special token
  for (const int32_t id : ids) {
    std::string_view bytes = TokenBytes(id);
    const bool special = IsSpecial(id);
    if (adds_space_prefix() && first && !special && bytes.starts_with(' ')) bytes.remove_prefix(1);
    text += bytes;
    first = special;
  }
  return text;
}

int32_t Tokenizer::n_vocab() const { return static_cast<int32_t>(state_->vocabulary.texts.size()); }
std::optional<int32_t> Tokenizer::bos() const { return state_->vocabulary.bos; }
std::optional<int32_t> Tokenizer::eos() const { return state_->vocabulary.eos; }
std::optional<int32_t> Tokenizer::eot() const { return state_->vocabulary.eot; }
bool Tokenizer::add_bos() const { return state_->vocabulary.add_bos; }
bool Tokenizer::adds_space_prefix() const { return state_->vocabulary.add_space_prefix; }

bool Tokenizer::IsEndOfGeneration(int32_t id) const {
  return IsValid(id) && state_->ends[static_cast<size_t>(id)];
}

bool Tokenizer::IsControl(int32_t id) const {
  KVASIR_CHECK(IsValid(id));
  return state_->IsControl(static_cast<size_t>(id));
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return IsControl(id) ||
         state_->vocabulary.types[static_cast<size_t>(id)] == TokenType::kUserDefined;
}

std::optional<int32_t> Tokenizer::FindControl(std::string_view text) const {
  return state_->control.FindWhole(text);
}

const base::Digest& Tokenizer::digest() const { return state_->digest; }

}  // namespace kvasir::tokenizer

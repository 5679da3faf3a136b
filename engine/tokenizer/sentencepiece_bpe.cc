// SentencePiece BPE. Source: Kudo, Richardson, "SentencePiece: a simple and language independent
// subword tokenizer", EMNLP 2018, section 3.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "engine/tokenizer/bpe_merge.h"
#include "engine/tokenizer/run_encoder.h"
#include "engine/tokenizer/utf8.h"

namespace kvasir::tokenizer {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // how the vocabulary writes a space

class SentencePieceBpe final : public RunEncoder {
 public:
  SentencePieceBpe(const Vocabulary& vocabulary, TextIndex ids)
      : vocabulary_(vocabulary), ids_(std::move(ids)) {
    byte_ids_.fill(-1);
    for (size_t i = 0; i < vocabulary.texts.size(); ++i) {
      const std::string& text = vocabulary.texts[i];
      const TokenType type = vocabulary.types[i];
      if (type == TokenType::kByte) byte_ids_[*ParseByteToken(text)] = static_cast<int32_t>(i);
      if (type != TokenType::kNormal && type != TokenType::kUserDefined) {
        ids_.erase(text);
      } else {
        text_bytes_max_ = std::max(text_bytes_max_, text.size());
      }
    }
  }

  void Encode(std::string_view run, std::vector<int32_t>& ids) const override {
    if (run.empty()) return;
    const std::string text = Escape(run);
    std::vector<Symbol> symbols;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = ReadUtf8(std::string_view(text).substr(at));
      const size_t bytes = c.kind == Utf8Char::Kind::kValid ? c.bytes : 1;
      symbols.push_back({Find(std::string_view(text).substr(at, bytes)), at, at + bytes});
      at += bytes;
    }
    MergeSymbols(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      const int32_t id = Find(std::string_view(text).substr(left.begin, right.end - left.begin));
      if (id < 0) return std::nullopt;
      return Merge{-static_cast<double>(vocabulary_.scores[static_cast<size_t>(id)]), id};
    });
    for (const Symbol& symbol : symbols) {
      const std::string_view covered =
          std::string_view(text).substr(symbol.begin, symbol.end - symbol.begin);
      if (symbol.id >= 0 && !covered.empty()) ids.push_back(symbol.id);
      if (symbol.id < 0) AppendBytes(covered, ids);
    }
  }

 private:
  std::string Escape(std::string_view run) const {
    std::string text(vocabulary_.add_space_prefix ? kSpaceMark : std::string_view());
    for (const char c : run) {
      if (c == ' ') {
        text += kSpaceMark;
      } else {
        text += c;
      }
    }
    return text;
  }

  int32_t Find(std::string_view text) const {
    if (text.size() > text_bytes_max_) return -1;
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

  // The byte tokens of a character that is no token; the unknown token where one of them is
  // missing.
  void AppendBytes(std::string_view bytes, std::vector<int32_t>& ids) const {
    const auto id = [this](char c) { return byte_ids_[static_cast<uint8_t>(c)]; };
    if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return id(c) >= 0; })) {
      for (const char c : bytes) ids.push_back(id(c));
    } else if (vocabulary_.unknown) {
      ids.push_back(*vocabulary_.unknown);
    }
  }

  const Vocabulary& vocabulary_;
  TextIndex ids_;                      // of what text may merge to: normal and user-defined tokens
  std::array<int32_t, 256> byte_ids_;  // -1: no token for this byte
  size_t text_bytes_max_ = 0;
};

}  // namespace

std::unique_ptr<RunEncoder> MakeSentencePieceBpe(const Vocabulary& vocabulary, TextIndex ids) {
  return std::make_unique<SentencePieceBpe>(vocabulary, std::move(ids));
}

}  // namespace kvasir::tokenizer

// Byte-level BPE. Source: Radford et al., "Language models are unsupervised multitask learners",
// 2019, section 2.2.
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "engine/base/status.h"
#include "engine/gguf/quote.h"
#include "engine/tokenizer/bpe_merge.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/run_encoder.h"
#include "engine/tokenizer/utf8.h"

namespace kvasir::tokenizer {
namespace {

// byte_of[c] for the code points U+0000..U+0143 of the alphabet; -1 for those outside it.
std::array<int, 324> ByteAlphabet() {
  std::array<int, 324> byte_of;
  byte_of.fill(-1);
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    byte_of[static_cast<size_t>(printable ? byte : next++)] = byte;
  }
  return byte_of;
}

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

using MergeTable = absl::flat_hash_map<uint64_t, Merge>;  // by PairKey

base::StatusOr<MergeTable> ReadMerges(const Vocabulary& v, const TextIndex& ids) {
  MergeTable table;
  table.reserve(v.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < v.merges.size(); ++rank) {
    const std::string_view merge = v.merges[rank];
    const auto fail = [&](std::string_view what) {
      return base::InvalidArgument("tokenizer.ggml.merges[{}]: {} {}", rank, gguf::Quote(merge),
                                   what);
    };
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size())
      return fail("is not two texts with a space between");
    const auto left = ids.find(merge.substr(0, space));
    const auto right = ids.find(merge.substr(space + 1));
    if (left == ids.end() || right == ids.end()) return fail("joins a text that is no token");
    joined = left->first;
    joined += right->first;
    const auto result = ids.find(joined);
    if (result == ids.end()) return fail("makes a text that is no token");
    const TokenType type = v.types[static_cast<size_t>(result->second)];
    if (type == TokenType::kControl || type == TokenType::kUnknown)
      return fail("makes a control token, which must not come from text");
    const Merge entry{static_cast<double>(rank), result->second};
    if (!table.emplace(PairKey(left->second, right->second), entry).second)
      return fail("is there twice");
  }
  return table;
}

class ByteLevelBpe final : public RunEncoder {
 public:
  ByteLevelBpe(const Vocabulary& vocabulary, MergeTable merges)
      : pre_(vocabulary.pre), merges_(std::move(merges)) {
    byte_ids_.fill(-1);
    for (size_t i = 0; i < vocabulary.texts.size(); ++i)
      if (vocabulary.types[i] == TokenType::kNormal)
        ReadToken(vocabulary.texts[i], static_cast<int32_t>(i));
  }

  void Encode(std::string_view run, std::vector<int32_t>& ids) const override {
    std::vector<size_t> ends;
    SplitPieces(pre_, run, ends);
    std::vector<Symbol> symbols;
    size_t begin = 0;
    for (const size_t end : ends) {
      EncodePiece(run.substr(begin, end - begin), symbols, ids);
      begin = end;
    }
  }

 private:
  void ReadToken(const std::string& text, int32_t id) {
    // Llama 3 takes a piece that is a token as it is, even where merging would not lead to it.
    const bool whole = pre_ == PreTokenizer::kLlamaBpe;
    if (text.size() > 2 && !whole) return;  // more than one character of the alphabet
    std::string bytes = ByteLevelBytes(text);
    if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
    if (whole) whole_.emplace(std::move(bytes), id);
  }

  void EncodePiece(std::string_view piece, std::vector<Symbol>& symbols,
                   std::vector<int32_t>& ids) const {
    if (const auto whole = whole_.find(base::ToAbsl(piece)); whole != whole_.end()) {
      ids.push_back(whole->second);
      return;
    }
    symbols.clear();
    for (size_t i = 0; i < piece.size(); ++i)
      symbols.push_back({byte_ids_[static_cast<uint8_t>(piece[i])], i, i + 1});
    MergeSymbols(symbols, [this](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
      if (left.id < 0 || right.id < 0) return std::nullopt;
      const auto merge = merges_.find(PairKey(left.id, right.id));
      if (merge == merges_.end()) return std::nullopt;
      return merge->second;
    });
    for (const Symbol& symbol : symbols)
      if (symbol.begin < symbol.end && symbol.id >= 0) ids.push_back(symbol.id);
  }

  PreTokenizer pre_;
  std::array<int32_t, 256> byte_ids_;  // -1: no token for this byte
  MergeTable merges_;
  absl::flat_hash_map<std::string, int32_t> whole_;  // Llama 3 only
};

}  // namespace

std::string ByteLevelBytes(std::string_view text) {
  static const std::array<int, 324> kByteOf = ByteAlphabet();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = ReadUtf8(text.substr(at));
    const bool inside = c.kind == Utf8Char::Kind::kValid && c.value < kByteOf.size();
    if (!inside || kByteOf[c.value] < 0) return std::string(text);
    bytes.push_back(static_cast<char>(kByteOf[c.value]));
    at += c.bytes;
  }
  return bytes;
}

base::StatusOr<std::unique_ptr<RunEncoder>> MakeByteLevelBpe(const Vocabulary& vocabulary,
                                                             const TextIndex& ids) {
  KVASIR_ASSIGN_OR_RETURN(MergeTable merges, ReadMerges(vocabulary, ids));
  return std::unique_ptr<RunEncoder>(new ByteLevelBpe(vocabulary, std::move(merges)));
}

}  // namespace kvasir::tokenizer

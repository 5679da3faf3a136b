// The tokenizer against tests/golden/tokenizer: every string of the three models, both ways, and
// the bytes of every token.
#include "tests/engine/tokenizer/golden.h"

#include <gtest/gtest.h>

#include "engine/base/digest.h"
#include "engine/tokenizer/detokenizer.h"

namespace kvasir::tokenizer {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

class TokenizerGolden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto model = LoadModel(GetParam());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = std::move(*model);
    lines_ = GoldenLines("tokenizer/" + GetParam() + ".jsonl");
    ASSERT_EQ(lines_.size(), 236u);
  }

  // The ids that the rule of this project (lossless) gives.
  static Ids Expected(const json& line) {
    return line.contains("ids_lossless") ? line["ids_lossless"].get<Ids>() : line["ids"].get<Ids>();
  }
  Ids Encode(const json& line) const {
    return model_.tokenizer->Encode(
        FromHex(line["bytes_hex"].get<std::string>()),
        line["parse_special"].get<bool>() ? SpecialTokens::kParse : SpecialTokens::kAsText);
  }

  Model model_;
  std::vector<json> lines_;
};

TEST_P(TokenizerGolden, EveryStringGivesTheGoldenIds) {
  for (const json& line : lines_) EXPECT_EQ(Encode(line), Expected(line)) << line["name"];
}

TEST_P(TokenizerGolden, EveryStringComesBack) {
  for (const json& line : lines_) {
    // detok_hex of an ill-formed string belongs to llama.cpp's ids; the lossless ones give the
    // input.
    const bool lossless = line.contains("ids_lossless");
    if (line.value("lossless_roundtrip", true) == false) continue;
    const bool changed = !lossless && line.contains("detok_hex");
    const std::string expected =
        FromHex(line[changed ? "detok_hex" : "bytes_hex"].get<std::string>());
    EXPECT_EQ(model_.tokenizer->Decode(Encode(line)), expected) << line["name"];
  }
}

TEST_P(TokenizerGolden, IdsOfOtherToolsDecodeToTheirGoldenText) {
  for (const json& line : lines_) {
    const std::string expected =
        FromHex(line[line.contains("detok_hex") ? "detok_hex" : "bytes_hex"].get<std::string>());
    EXPECT_EQ(model_.tokenizer->Decode(line["ids"].get<Ids>()), expected) << line["name"];
  }
}

TEST_P(TokenizerGolden, StreamedTextEqualsTheWholeText) {
  for (const json& line : lines_) {
    const Ids ids = Encode(line);
    Detokenizer stream(model_.tokenizer.get());
    std::string text;
    for (const int32_t id : ids) {
      const std::string piece = stream.Push(id);
      EXPECT_EQ(piece, SanitizeUtf8(piece)) << line["name"];
      text += piece;
    }
    text += stream.Flush();
    EXPECT_EQ(text, SanitizeUtf8(model_.tokenizer->Decode(ids))) << line["name"];
  }
}

TEST_P(TokenizerGolden, TheBytesOfAllTokensHaveTheGoldenDigest) {
  const auto text = base::ReadFile("tests/golden/tokenizer/summary.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const json summary = json::parse(*text)[GetParam()];
  ASSERT_EQ(model_.tokenizer->n_vocab(), summary["n_vocab"].get<int32_t>());
  base::Hasher hasher;
  for (int32_t id = 0; id < model_.tokenizer->n_vocab(); ++id) {
    const std::string_view bytes = model_.tokenizer->TokenBytes(id);
    uint8_t length[4];
    for (size_t i = 0; i < 4; ++i) length[i] = static_cast<uint8_t>(bytes.size() >> (8 * i));
    hasher.Add(length);
    hasher.Add(base::AsBytes(bytes));
  }
  EXPECT_EQ(hasher.Finish().Hex(), summary["pieces_sha256"].get<std::string>());
}

TEST_P(TokenizerGolden, EveryPrefixOfAnEmojiTextComesBack) {
  // A family, a flag, a keycap, skin tones: 4-byte characters, joiners, variation selectors.
  const std::string text =
      "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1EB\U0001F1F7 1\uFE0F\u20E3 "
      "\U0001F44B\U0001F3FD\u2764\uFE0F";
  for (size_t n = 0; n <= text.size(); ++n) {
    const std::string prefix = text.substr(0, n);
    const Ids ids = model_.tokenizer->Encode(prefix, SpecialTokens::kAsText);
    // SmolLM2 has no token for the byte F3 and 20 others; none of them is in this text.
    EXPECT_EQ(model_.tokenizer->Decode(ids), prefix) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden, testing::Values("smollm2", "q05", "gemma3"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace kvasir::tokenizer

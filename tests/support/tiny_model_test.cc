// The tiny model and its makers: what they write is what the product reads.
#include "tests/support/tiny_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/rng.h"
#include "engine/gguf/file.h"
#include "engine/model/config.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/support/quantize.h"

namespace kvasir::testing {
namespace {

TEST(TinyModel, IsAModelWithTokenizerAndChatTemplate) {
  const std::string bytes_of_file = MakeTinyModel({});
  const auto file = gguf::File::Parse(base::AsBytes(bytes_of_file));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto config = model::Config::FromFile(**file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->n_embd, 256);
  const auto tokenizer = tokenizer::Tokenizer::Create(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto chat = tokenizer::ChatTemplate::Create(**file, tokenizer->get());
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->end_of_turn(), kTinyImEnd);
}

TEST(TinyModel, EveryByteHasAToken) {
  const std::string bytes_of_file = MakeTinyModel({.seed = 2, .layers = 1});
  const auto file = gguf::File::Parse(base::AsBytes(bytes_of_file));
  ASSERT_TRUE(file.ok()) << file.status();
  const auto tokenizer = tokenizer::Tokenizer::Create(**file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  const auto ids = (*tokenizer)->Encode(bytes, tokenizer::SpecialTokens::kAsText);
  EXPECT_EQ((*tokenizer)->Decode(ids), bytes);
  for (int b = 0; b < 256; ++b) {
    EXPECT_EQ((*tokenizer)->TokenBytes(TinyByteToken(static_cast<uint8_t>(b))),
              std::string(1, static_cast<char>(b)));
  }
}

TEST(TinyModel, DependsOnItsOptionsOnly) {
  EXPECT_EQ(MakeTinyModel({.seed = 3, .layers = 1}), MakeTinyModel({.seed = 3, .layers = 1}));
  EXPECT_NE(MakeTinyModel({.seed = 3, .layers = 1}), MakeTinyModel({.seed = 4, .layers = 1}));
  // The same on every machine.
  EXPECT_EQ(base::Sha256(base::AsBytes(MakeTinyModel({.seed = 3, .layers = 1}))).Hex(),
            "80b22f11517465f9de6807ac97aebdd3b5c60786cca69a06d071d2940c4d2449");
}

TEST(Quantize, AnElementIsOffByOneLevelOfItsBlockAtMost) {
  using gguf::TensorType;
  std::vector<float> values(2048);
  for (size_t i = 0; i < values.size(); ++i) {  // eight magnitudes, one for each 256
    values[i] =
        static_cast<float>((2 * base::UniformAt(1, 2, i) - 1) * static_cast<double>(i / 256));
  }
  // Levels between −1 and 1, and what 6-bit (Q4_K) or 7-bit (Q6_K) scales round up.
  const std::pair<TensorType, double> cases[] = {{TensorType::kF32, 0},
                                                 {TensorType::kQ8_0, 1.0 / 127},
                                                 {TensorType::kQ4_1, 2.0 / 15},
                                                 {TensorType::kQ5_0, 1.0 / 15},
                                                 {TensorType::kQ4_K, 2.0 / 15 + 2.0 / 63},
                                                 {TensorType::kQ6_K, 1.0 / 31 + 1.0 / 127}};
  for (const auto& [type, level] : cases) {
    const std::string blocks = Quantize(type, values);
    std::vector<float> back(values.size());
    gguf::Dequantize(type, reinterpret_cast<const uint8_t*>(blocks.data()),
                     static_cast<int64_t>(back.size()), back.data());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::fabs(back[i] - values[i]), level * static_cast<double>(i / 256) * 1.001)
          << gguf::Info(type).name << " element " << i;
    }
  }
}

}  // namespace
}  // namespace kvasir::testing

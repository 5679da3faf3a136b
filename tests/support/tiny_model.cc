#include "tests/support/tiny_model.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/quantize.h"

namespace kvasir::testing {
namespace {

using gguf::TensorType;

constexpr int64_t kEmbd = 256, kHeads = 4, kKvHeads = 2, kHeadDim = 64, kFf = 512;

// As in tests/golden/chat/smollm2.template.jinja.
constexpr std::string_view kChatTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}";

std::string Utf8(uint32_t c) {
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
}

// GPT-2's alphabet: printable Latin-1 bytes stand for themselves, the others for 256, 257, ...
std::vector<std::string> ByteAlphabet() {
  std::vector<std::string> alphabet(256);
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
    alphabet[b] = Utf8(printable ? b : next++);
  }
  return alphabet;
}

struct TinyVocabulary {
  std::vector<std::string> texts = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types = {3, 3, 3};
  std::vector<std::string> merges;
};

TinyVocabulary MakeVocabulary() {
  TinyVocabulary v;
  for (const std::string& text : ByteAlphabet()) v.texts.push_back(text);
  const std::string space = Utf8(0x120);
  const std::pair<std::string, std::string> kMerges[] = {
      {space, "t"}, {"h", "e"}, {"i", "n"},          {"r", "e"},   {space, "a"},
      {"o", "n"},   {"e", "r"}, {space + "t", "he"}, {"a", "t"},   {"in", "g"},
      {"e", "n"},   {"l", "l"}, {"o", "u"},          {"y", "ou"},  {space, "you"},
      {"s", "t"},   {"o", "r"}, {space, "i"},        {"he", "ll"}, {"hell", "o"}};
  for (const auto& [left, right] : kMerges) {
    v.merges.push_back(left + " " + right);
    v.texts.push_back(left + right);
  }
  v.types.resize(v.texts.size(), 1);
  return v;
}

// Weights: sums of four uniform numbers, mean 0, standard deviation as given; each tensor has its
// own stream.
class WeightSource {
 public:
  explicit WeightSource(uint64_t seed) : seed_(seed) {}

  std::vector<float> Next(int64_t count, double mean, double deviation) {
    std::vector<float> values(count);
    ++stream_;
    for (int64_t i = 0; i < count; ++i) {
      const auto words = base::Philox(seed_, {static_cast<uint32_t>(i), 0, stream_, 0});
      double sum = -2.0;
      for (const uint32_t word : words) sum += word * 0x1.0p-32;
      constexpr double kRoot3 = 1.7320508075688772;  // 1 / deviation of the sum
      values[i] = static_cast<float>(mean + deviation * kRoot3 * sum);
    }
    return values;
  }

 private:
  uint64_t seed_;
  uint32_t stream_ = 0;
};

class Builder {
 public:
  Builder(GgufWriter& writer, uint64_t seed) : writer_(writer), source_(seed) {}

  void Vector(const std::string& name, int64_t n) {
    writer_.AddTensor(name, {n}, TensorType::kF32,
                      Quantize(TensorType::kF32, source_.Next(n, 1.0, 0.1)));
  }
  // [rows, columns], deviation gain / sqrt(columns).
  void Matrix(const std::string& name, int64_t rows, int64_t columns, double gain,
              TensorType type) {
    AddMatrix(name, rows, columns, type, Values(rows, columns, gain));
  }
  std::vector<float> Values(int64_t rows, int64_t columns, double gain) {
    return source_.Next(rows * columns, 0.0, gain / std::sqrt(static_cast<double>(columns)));
  }
  void AddMatrix(const std::string& name, int64_t rows, int64_t columns, TensorType type,
                 const std::vector<float>& values) {
    writer_.AddTensor(name, {columns, rows}, type, Quantize(type, values));
  }

 private:
  GgufWriter& writer_;
  WeightSource source_;
};

void AddLayer(Builder& b, int layer) {
  const std::string p = "blk." + std::to_string(layer) + ".";
  const bool odd = layer % 2 == 1;
  b.Vector(p + "attn_norm.weight", kEmbd);
  b.Matrix(p + "attn_q.weight", kHeads * kHeadDim, kEmbd, 1.6,
           odd ? TensorType::kQ4_1 : TensorType::kQ4_K);
  b.Matrix(p + "attn_k.weight", kKvHeads * kHeadDim, kEmbd, 1.6,
           odd ? TensorType::kQ5_0 : TensorType::kQ8_0);
  b.Matrix(p + "attn_v.weight", kKvHeads * kHeadDim, kEmbd, 1.0,
           odd ? TensorType::kQ8_0 : TensorType::kQ6_K);
  b.Matrix(p + "attn_output.weight", kEmbd, kHeads * kHeadDim, 1.5,
           odd ? TensorType::kQ4_K : TensorType::kQ5_0);
  b.Vector(p + "ffn_norm.weight", kEmbd);
  b.Matrix(p + "ffn_gate.weight", kFf, kEmbd, 1.2, odd ? TensorType::kQ4_K : TensorType::kQ4_1);
  b.Matrix(p + "ffn_up.weight", kFf, kEmbd, 1.2, odd ? TensorType::kQ5_0 : TensorType::kQ8_0);
  b.Matrix(p + "ffn_down.weight", kEmbd, kFf, 1.5, odd ? TensorType::kQ6_K : TensorType::kQ4_K);
}

// Rows of tokens that are no printable ASCII are small, so that the text is mostly ASCII.
void AddOutput(Builder& b, const TinyVocabulary& v) {
  const int64_t n_vocab = static_cast<int64_t>(v.texts.size());
  std::vector<float> values = b.Values(n_vocab, kEmbd, 4.0);
  for (int64_t id = 0; id < 3 + 256; ++id) {
    const int64_t byte = id - 3;
    if (id == kTinyImEnd || (byte >= 32 && byte < 127)) continue;
    for (int64_t i = 0; i < kEmbd; ++i) values[id * kEmbd + i] *= 0.25f;
  }
  b.AddMatrix("output.weight", n_vocab, kEmbd, TensorType::kQ6_K, values);
}

void AddHyperParameters(GgufWriter& w, const TinyModelOptions& options) {
  w.AddString("general.architecture", "llama");
  w.AddString("general.name", "kvasir tiny test model");
  w.AddU32("llama.block_count", static_cast<uint32_t>(options.layers));
  w.AddU32("llama.context_length", options.context_tokens);
  w.AddU32("llama.embedding_length", kEmbd);
  w.AddU32("llama.feed_forward_length", kFf);
  w.AddU32("llama.attention.head_count", kHeads);
  w.AddU32("llama.attention.head_count_kv", kKvHeads);
  w.AddF32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  w.AddU32("llama.rope.dimension_count", kHeadDim);
  w.AddF32("llama.rope.freq_base", 10000.0f);
}

void AddTokenizer(GgufWriter& w, const TinyVocabulary& v) {
  w.AddString("tokenizer.ggml.model", "gpt2");
  w.AddString("tokenizer.ggml.pre", "smollm");
  w.AddStrings("tokenizer.ggml.tokens", v.texts);
  w.AddI32s("tokenizer.ggml.token_type", v.types);
  w.AddStrings("tokenizer.ggml.merges", v.merges);
  w.AddU32("tokenizer.ggml.bos_token_id", kTinyImStart);
  w.AddU32("tokenizer.ggml.eos_token_id", kTinyImEnd);
  w.AddBool("tokenizer.ggml.add_bos_token", false);
  w.AddString("tokenizer.chat_template", kChatTemplate);
}

}  // namespace

std::string MakeTinyModel(const TinyModelOptions& options) {
  const TinyVocabulary vocabulary = MakeVocabulary();
  GgufWriter writer;
  AddHyperParameters(writer, options);
  AddTokenizer(writer, vocabulary);
  Builder builder(writer, options.seed);
  builder.Matrix("token_embd.weight", static_cast<int64_t>(vocabulary.texts.size()), kEmbd, 16.0,
                 TensorType::kQ8_0);
  for (int layer = 0; layer < options.layers; ++layer) AddLayer(builder, layer);
  builder.Vector("output_norm.weight", kEmbd);
  AddOutput(builder, vocabulary);
  return writer.Bytes();
}

TinyModelFile::TinyModelFile(const TinyModelOptions& options) {
  directory_ = (std::filesystem::temp_directory_path() / "kvasir-tiny-XXXXXX").string();
  KVASIR_CHECK(mkdtemp(directory_.data()) != nullptr);
  path_ = directory_ + "/tiny.gguf";
  const std::string bytes = MakeTinyModel(options);
  std::ofstream file(path_, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  KVASIR_CHECK(file.good());
}

TinyModelFile::~TinyModelFile() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace kvasir::testing

// Config: files that are well formed but no model this engine computes are refused with an error
// that names the key or tensor; what is accepted is read completely.
#include "engine/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/engine/gguf/writer.h"

namespace kvasir::model {
namespace {

using gguf::GgufWriter;
using testing::AllOf;
using testing::HasSubstr;

base::StatusOr<Config> FromPath(const std::string& path) {
  KVASIR_ASSIGN_OR_RETURN(const auto file, gguf::File::Open(path));
  return Config::FromFile(*file);
}

base::StatusOr<Config> FromBytes(const gguf::Bytes& bytes) {
  KVASIR_ASSIGN_OR_RETURN(const auto file, gguf::File::Parse(bytes));
  return Config::FromFile(*file);
}

// A model of one layer: width 8, 2 heads of 4, 1 key/value head, feed-forward 12, 5 tokens. Tests
// change one thing.
struct Parts {
  std::string architecture = "llama";
  std::set<std::string> dropped;  // keys and tensors left out
  std::set<std::string> half;     // tensors written as F16
  std::map<std::string, uint32_t> numbers = {
      {"block_count", 1},          {"context_length", 64},      {"embedding_length", 8},
      {"feed_forward_length", 12}, {"attention.head_count", 2}, {"attention.head_count_kv", 1}};
  std::map<std::string, std::vector<uint64_t>> tensors = {
      {"token_embd.weight", {8, 5}},        {"output_norm.weight", {8}},
      {"blk.0.attn_norm.weight", {8}},      {"blk.0.attn_q.weight", {8, 8}},
      {"blk.0.attn_k.weight", {8, 4}},      {"blk.0.attn_v.weight", {8, 4}},
      {"blk.0.attn_output.weight", {8, 8}}, {"blk.0.ffn_norm.weight", {8}},
      {"blk.0.ffn_gate.weight", {8, 12}},   {"blk.0.ffn_up.weight", {8, 12}},
      {"blk.0.ffn_down.weight", {12, 8}}};
};

void AddTensor(GgufWriter& writer, const Parts& parts, const std::string& name,
               const std::vector<uint64_t>& dims) {
  uint64_t elements = 1;
  for (const uint64_t dim : dims) elements *= dim;
  if (parts.half.contains(name)) {
    writer.Tensor(name, dims, 1, gguf::Bytes(elements * 2, 0));
  } else {
    writer.F32Tensor(name, dims, std::vector<float>(elements, 1.5f));
  }
}

// `add_keys` writes further keys.
template <typename AddKeys>
gguf::Bytes Build(const Parts& parts, AddKeys add_keys) {
  GgufWriter writer;
  writer.String("general.architecture", parts.architecture);
  for (const auto& [name, value] : parts.numbers) {
    if (!parts.dropped.contains(name)) writer.U32(parts.architecture + "." + name, value);
  }
  writer.F32(parts.architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
  writer.String("tokenizer.ggml.model", "gpt2");
  writer.Strings("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"});
  add_keys(writer);
  for (const auto& [name, dims] : parts.tensors) {
    if (!parts.dropped.contains(name)) AddTensor(writer, parts, name, dims);
  }
  return writer.Build();
}

gguf::Bytes Build(const Parts& parts) {
  return Build(parts, [](GgufWriter&) {});
}

// Refused, with a message that holds `part`.
void ExpectRefused(const gguf::Bytes& bytes, const std::string& part,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const auto config = FromBytes(bytes);
  ASSERT_FALSE(config.ok()) << part;
  EXPECT_EQ(config.status().code(), code) << config.status();
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(part));
}

TEST(Config, RefusesEveryModelCaseOfTheMalformedCorpusNamingKeyOrTensor) {
  std::ifstream in("tests/golden/bad_gguf/manifest.json");
  int cases = 0;
  for (const auto& entry : nlohmann::json::parse(in)) {
    if (entry["must_fail"] != "model") continue;
    ++cases;
    const std::string path = "tests/golden/bad_gguf/" + entry["file"].get<std::string>();
    const auto config = FromPath(path);
    ASSERT_FALSE(config.ok()) << path << ": " << entry["why"];
    EXPECT_THAT(std::string(config.status().message()),
                testing::ContainsRegex("key '[a-z_.]+'|tensor '[a-z0-9_.]+'"))
        << path;
  }
  EXPECT_EQ(cases, 30);
}

TEST(Config, ReadsTheTinyLlamaOfTheMalformedCorpus) {
  const auto config = FromPath("tests/golden/bad_gguf/valid_tiny_llama.gguf");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->n_layer, 1);
  EXPECT_EQ(config->n_embd, 4);
  EXPECT_EQ(config->n_vocab, 8);
  EXPECT_EQ(config->rope_base, 10000.0);  // the key is absent
  EXPECT_EQ(config->rms_eps, static_cast<double>(1e-5f));
}

TEST(Config, ReadsTheTinyLlama) {
  const auto config = FromPath("tests/golden/tiny/llama.gguf");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kLlama);
  EXPECT_EQ(config->n_layer, 2);
  EXPECT_EQ(config->n_embd, 16);
  EXPECT_EQ(config->n_ff, 24);
  EXPECT_EQ(config->n_head, 4);
  EXPECT_EQ(config->n_kv_heads, 2);
  EXPECT_EQ(config->key_length, 4);
  EXPECT_EQ(config->value_length, 4);
  EXPECT_EQ(config->n_vocab, 40);
  EXPECT_EQ(config->n_ctx_train, 64);
  EXPECT_EQ(config->rms_eps, static_cast<double>(0.01f));
  EXPECT_EQ(config->n_rot, 4);
  EXPECT_TRUE(config->rope_interleaved);
  EXPECT_EQ(config->rope_base, 1000.0);
  EXPECT_EQ(config->rope_scale, 1.0);
  EXPECT_TRUE(config->rope_factors.empty());
  EXPECT_TRUE(config->tied_output);
  EXPECT_FALSE(config->qkv_bias);
  EXPECT_EQ(config->bos_id, 1);
  EXPECT_EQ(config->eos_id, 2);
}

TEST(Config, ReadsTheTinyQwen2WithBiasesAndItsOwnOutput) {
  const auto config = FromPath("tests/golden/tiny/qwen2.gguf");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, Architecture::kQwen2);
  EXPECT_EQ(config->n_rot, 4);  // the key is absent: the whole head
  EXPECT_FALSE(config->rope_interleaved);
  EXPECT_FALSE(config->tied_output);
  EXPECT_TRUE(config->qkv_bias);
}

TEST(Config, RefusesAnArchitectureItDoesNotComputeByName) {
  const auto config = FromPath("tests/golden/tiny/gemma3.gguf");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("'gemma3'"));
}

TEST(Config, AcceptsAModelWithoutOptionalParts) {
  const auto config = FromBytes(Build(Parts()));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->key_length, 4);
  EXPECT_FALSE(config->bos_id.has_value());
  EXPECT_FALSE(config->eos_id.has_value());
}

TEST(Config, RefusesEveryMissingTensorByName) {
  for (const auto& [name, dims] : Parts().tensors) {
    Parts parts;
    parts.dropped = {name};
    ExpectRefused(Build(parts), "tensor '" + name + "'");
  }
}

TEST(Config, RefusesEveryWrongShapeByName) {
  for (const auto& [name, dims] : Parts().tensors) {
    if (name == "token_embd.weight") continue;  // its rows are the vocabulary
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      Parts parts;
      parts.tensors[name][axis] += 1;
      ExpectRefused(Build(parts), "tensor '" + name + "'");
    }
    Parts parts;
    parts.tensors[name].push_back(1);
    ExpectRefused(Build(parts), "tensor '" + name + "'");
  }
}

TEST(Config, RefusesAnEmbeddingThatDoesNotFitTheVocabulary) {
  Parts parts;
  parts.tensors["token_embd.weight"] = {8, 6};
  ExpectRefused(Build(parts), "'tokenizer.ggml.tokens' has 5 entries");
  parts.tensors["token_embd.weight"] = {9, 5};
  ExpectRefused(Build(parts), "tensor 'token_embd.weight' has shape [9, 5], [8, 5] is expected");
  ExpectRefused(Build(Parts(), [](GgufWriter& w) { w.U32("llama.vocab_size", 6); }),
                "'llama.vocab_size'");
}

TEST(Config, RefusesTensorsThatHaveNoPlaceInTheModel) {
  Parts parts;
  parts.tensors["blk.0.attn_q_norm.weight"] = {4};
  ExpectRefused(Build(parts), "'blk.0.attn_q_norm.weight'", absl::StatusCode::kUnimplemented);
  parts = Parts();
  parts.tensors["blk.1.attn_norm.weight"] = {8};
  ExpectRefused(Build(parts), "'blk.1.attn_norm.weight'", absl::StatusCode::kUnimplemented);
}

TEST(Config, TakesMatricesInHalfPrecisionButVectorsOnlyInF32) {
  Parts parts;
  parts.half = {"blk.0.attn_q.weight", "token_embd.weight"};
  EXPECT_TRUE(FromBytes(Build(parts)).ok());
  parts.half = {"blk.0.attn_norm.weight"};
  ExpectRefused(Build(parts), "tensor 'blk.0.attn_norm.weight' is of type F16");
}

TEST(Config, TakesBiasesOfAllLayersAndHeadsOrOfNone) {
  Parts parts;
  parts.architecture = "qwen2";
  EXPECT_TRUE(FromBytes(Build(parts)).ok());
  parts.tensors["blk.0.attn_q.bias"] = {8};
  ExpectRefused(Build(parts), "tensor 'blk.0.attn_k.bias'");
  parts.tensors["blk.0.attn_k.bias"] = {4};
  parts.tensors["blk.0.attn_v.bias"] = {4};
  const auto config = FromBytes(Build(parts));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->qkv_bias);
  parts.dropped = {"blk.0.attn_q.bias"};
  ExpectRefused(Build(parts), "'blk.0.attn_k.bias'", absl::StatusCode::kUnimplemented);
  parts.dropped = {};
  parts.tensors["blk.0.attn_k.bias"] = {8};
  ExpectRefused(Build(parts), "tensor 'blk.0.attn_k.bias' has shape [8], [4] is expected");
}

TEST(Config, TakesHeadLengthsOfTheirOwn) {
  Parts parts;
  parts.numbers["attention.key_length"] = 6;
  parts.numbers["attention.value_length"] = 2;
  parts.tensors["blk.0.attn_q.weight"] = {8, 12};
  parts.tensors["blk.0.attn_k.weight"] = {8, 6};
  parts.tensors["blk.0.attn_v.weight"] = {8, 2};
  parts.tensors["blk.0.attn_output.weight"] = {4, 8};
  const auto config = FromBytes(Build(parts));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->key_length, 6);
  EXPECT_EQ(config->value_length, 2);
  EXPECT_EQ(config->n_rot, 6);
}

TEST(Config, RefusesNumbersOutOfRangeByKey) {
  for (const auto& [name, value] : Parts().numbers) {
    for (const uint32_t wrong : {0u, 0xffffffffu}) {
      Parts parts;
      parts.numbers[name] = wrong;
      ExpectRefused(Build(parts), "key 'llama." + name + "' is " + std::to_string(wrong));
    }
  }
  const auto with_eps = [](float eps) {
    return Build(Parts(), [eps](GgufWriter& w) { w.F32("llama.rope.freq_base", eps); });
  };
  for (const float wrong : {0.0f, -1.0f, NAN, INFINITY}) {
    ExpectRefused(with_eps(wrong), "'llama.rope.freq_base'");
  }
}

TEST(Config, RefusesAHeadCountThatDiffersByLayer) {
  Parts parts;
  parts.dropped = {"attention.head_count_kv"};
  ExpectRefused(Build(parts,
                      [](GgufWriter& w) {
                        w.Numbers<uint32_t>("llama.attention.head_count_kv", gguf::kTypeU32, {1});
                      }),
                "key 'llama.attention.head_count_kv' is an array, an integer is needed");
}

TEST(Config, ReadsNoAndLinearRopeScalingAndRefusesOthersByName) {
  const auto with = [](std::string_view type, float factor) {
    return FromBytes(Build(Parts(), [&](GgufWriter& w) {
      if (!type.empty()) w.String("llama.rope.scaling.type", type);
      w.F32("llama.rope.scaling.factor", factor);
    }));
  };
  EXPECT_EQ(with("none", 4)->rope_scale, 1.0);
  EXPECT_EQ(with("linear", 4)->rope_scale, 0.25);
  EXPECT_EQ(with("", 4)->rope_scale, 0.25);
  for (const std::string type : {"yarn", "longrope", "dynamic", "\n"}) {
    const auto status = with(type, 4).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr("'llama.rope.scaling.type'"));
  }
  for (const float wrong : {0.0f, -2.0f, NAN, INFINITY}) {
    EXPECT_EQ(with("linear", wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
  EXPECT_EQ(FromBytes(Build(Parts(), [](GgufWriter& w) { w.F32("llama.rope.scale_linear", 2); }))
                ->rope_scale,
            0.5);
}

TEST(Config, ReadsRopeFactorsAndRefusesWrongOnes) {
  Parts parts;
  parts.tensors["rope_freqs.weight"] = {2};
  const auto config = FromBytes(Build(parts));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->rope_factors, testing::ElementsAre(1.5f, 1.5f));
  parts.tensors["rope_freqs.weight"] = {4};
  ExpectRefused(Build(parts), "tensor 'rope_freqs.weight' has shape [4], [2] is expected");
  parts.tensors.erase("rope_freqs.weight");
  for (const float wrong : {0.0f, -1.0f, NAN, INFINITY}) {
    ExpectRefused(Build(parts,
                        [&](GgufWriter& w) {
                          w.F32Tensor("rope_freqs.weight", {2}, {1.0f, wrong});
                        }),
                  "tensor 'rope_freqs.weight'");
  }
}

TEST(Config, RefusesExpertsAndWindowsByKey) {
  for (const std::string key : {"llama.expert_count", "llama.attention.sliding_window"}) {
    ExpectRefused(Build(Parts(), [&](GgufWriter& w) { w.U32(key, 8); }), "'" + key + "'",
                  absl::StatusCode::kUnimplemented);
    EXPECT_TRUE(FromBytes(Build(Parts(), [&](GgufWriter& w) { w.U32(key, 0); })).ok());
  }
  EXPECT_TRUE(FromBytes(Build(Parts(), [](GgufWriter& w) {
                w.U32("llama.attention.sliding_window", 64);  // the whole context
              })).ok());
}

TEST(Config, RefusesSpecialTokensOutsideTheVocabulary) {
  for (const std::string name : {"bos", "eos", "unknown", "eot"}) {
    const std::string key = "tokenizer.ggml." + name + "_token_id";
    EXPECT_TRUE(FromBytes(Build(Parts(), [&](GgufWriter& w) { w.U32(key, 4); })).ok());
    ExpectRefused(Build(Parts(), [&](GgufWriter& w) { w.U32(key, 5); }), "'" + key + "' is 5");
    ExpectRefused(
        Build(Parts(), [&](GgufWriter& w) { w.Scalar<int32_t>(key, gguf::kTypeI32, -1); }),
        "'" + key + "' is -1");
  }
}

TEST(Config, ListsTheTensorsItChecks) {
  const auto config = FromPath("tests/golden/tiny/qwen2.gguf");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ExpectedTensors(*config).size(), 27u);
  EXPECT_EQ(ExpectedTensors(*config).front().name, "token_embd.weight");
}

}  // namespace
}  // namespace kvasir::model

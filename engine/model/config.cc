#include "engine/model/config.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/gguf/quote.h"
#include "engine/model/checks.h"

namespace kvasir::model {
namespace {

using base::Status;
using base::StatusOr;
using gguf::File;
using gguf::Quote;

struct ArchitectureInfo {
  Architecture architecture;
  std::string_view name;
  bool rope_interleaved;
};

constexpr ArchitectureInfo kArchitectures[] = {
    {Architecture::kLlama, "llama", true},
    {Architecture::kQwen2, "qwen2", false},
};

// The key-values of one architecture. A missing required key is InvalidArgument: the file is whole
// but no model.
class Keys {
 public:
  Keys(const File& file, std::string_view architecture) : file_(file), prefix_(architecture) {}

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }
  bool Has(std::string_view name) const { return file_.Has(Key(name)); }

  // The integer `name` in [min, max]; `absent` when the key is missing, an error if that is null.
  StatusOr<int64_t> Int(std::string_view name, int64_t min, int64_t max,
                        std::optional<int64_t> absent = std::nullopt) const {
    if (absent && !Has(name)) return *absent;
    auto value = file_.GetInt(Key(name));
    if (!value.ok()) return Required(value.status());
    if (*value < min || *value > max) {
      return base::InvalidArgument("key {} is {}, {} to {} are allowed", Quote(Key(name)), *value,
                                   min, max);
    }
    return *value;
  }

  // The float `name`, finite and > 0; `absent` as in Int.
  StatusOr<double> Positive(std::string_view name,
                            std::optional<double> absent = std::nullopt) const {
    if (absent && !Has(name)) return *absent;
    auto value = file_.GetFloat(Key(name));
    if (!value.ok()) return Required(value.status());
    if (*value <= 0) {
      return base::InvalidArgument("key {} is {}, more than 0 is needed", Quote(Key(name)), *value);
    }
    return *value;
  }

  // The string `name`, or `absent`.
  StatusOr<std::string_view> String(std::string_view name, std::string_view absent) const {
    if (!Has(name)) return absent;
    return file_.GetString(Key(name));
  }

 private:
  static Status Required(const Status& status) {
    if (!absl::IsNotFound(status)) return status;
    return base::InvalidArgument("{}", base::ToStd(status.message()));
  }

  const File& file_;
  std::string_view prefix_;
};

StatusOr<const ArchitectureInfo*> FindArchitecture(const File& file) {
  KVASIR_ASSIGN_OR_RETURN(const std::string_view name, file.GetString("general.architecture"));
  for (const ArchitectureInfo& info : kArchitectures) {
    if (info.name == name) return &info;
  }
  return base::Unimplemented("key 'general.architecture' is {}, supported are llama and qwen2",
                             Quote(name));
}

Status ReadSizes(const Keys& keys, Config& config) {
  KVASIR_ASSIGN_OR_RETURN(config.n_layer, keys.Int("block_count", 1, kLayersMax));
  KVASIR_ASSIGN_OR_RETURN(config.n_embd, keys.Int("embedding_length", 1, kWidthMax));
  KVASIR_ASSIGN_OR_RETURN(config.n_ff, keys.Int("feed_forward_length", 1, kWidthMax));
  KVASIR_ASSIGN_OR_RETURN(config.n_ctx_train, keys.Int("context_length", 1, kContextMax));
  KVASIR_ASSIGN_OR_RETURN(config.rms_eps, keys.Positive("attention.layer_norm_rms_epsilon"));
  return base::OkStatus();
}

// The length of a key or value head: its own key, else n_embd / n_head.
StatusOr<int64_t> ReadHeadLength(const Keys& keys, std::string_view name, const Config& config) {
  if (!keys.Has(name) && config.n_embd % config.n_head != 0) {
    return base::InvalidArgument("key {} is {}, no multiple of {} = {}, and there is no {}",
                                 Quote(keys.Key("embedding_length")), config.n_embd,
                                 Quote(keys.Key("attention.head_count")), config.n_head,
                                 Quote(keys.Key(name)));
  }
  KVASIR_ASSIGN_OR_RETURN(const int64_t length,
                          keys.Int(name, 1, kHeadLengthMax, config.n_embd / config.n_head));
  if (length > kHeadLengthMax) {
    return base::InvalidArgument("{} = {} over {} = {} gives heads of {}, at most {} are allowed",
                                 Quote(keys.Key("embedding_length")), config.n_embd,
                                 Quote(keys.Key("attention.head_count")), config.n_head, length,
                                 kHeadLengthMax);
  }
  return length;
}

Status ReadHeads(const Keys& keys, Config& config) {
  KVASIR_ASSIGN_OR_RETURN(config.n_head, keys.Int("attention.head_count", 1, kHeadsMax));
  KVASIR_ASSIGN_OR_RETURN(config.n_kv_heads,
                          keys.Int("attention.head_count_kv", 1, kHeadsMax, config.n_head));
  if (config.n_head % config.n_kv_heads != 0) {
    return base::InvalidArgument("key {} is {}, no multiple of {} = {}",
                                 Quote(keys.Key("attention.head_count")), config.n_head,
                                 Quote(keys.Key("attention.head_count_kv")), config.n_kv_heads);
  }
  KVASIR_ASSIGN_OR_RETURN(config.key_length, ReadHeadLength(keys, "attention.key_length", config));
  KVASIR_ASSIGN_OR_RETURN(config.value_length,
                          ReadHeadLength(keys, "attention.value_length", config));
  return base::OkStatus();
}

// Older files have the factor of linear scaling as rope.scale_linear and no type.
StatusOr<double> ReadRopeScale(const Keys& keys) {
  KVASIR_ASSIGN_OR_RETURN(const std::string_view type, keys.String("rope.scaling.type", "linear"));
  if (type == "none") return 1.0;
  if (type != "linear") {
    return base::Unimplemented("key {} is {}, supported are none and linear",
                               Quote(keys.Key("rope.scaling.type")), Quote(type));
  }
  KVASIR_ASSIGN_OR_RETURN(const double old_factor, keys.Positive("rope.scale_linear", 1.0));
  KVASIR_ASSIGN_OR_RETURN(const double factor, keys.Positive("rope.scaling.factor", old_factor));
  const double scale = 1.0 / factor;
  if (!std::isfinite(scale)) {
    return base::InvalidArgument("key {} is {}, too small to divide by",
                                 Quote(keys.Key("rope.scaling.factor")), factor);
  }
  return scale;
}

Status ReadRope(const Keys& keys, Config& config) {
  KVASIR_ASSIGN_OR_RETURN(config.rope_base, keys.Positive("rope.freq_base", 10000.0));
  KVASIR_ASSIGN_OR_RETURN(config.rope_scale, ReadRopeScale(keys));
  KVASIR_ASSIGN_OR_RETURN(
      config.n_rot, keys.Int("rope.dimension_count", 2, config.key_length, config.key_length));
  if (config.n_rot % 2 != 0) {
    return base::InvalidArgument("key {} is {}, an even number is needed",
                                 Quote(keys.Key("rope.dimension_count")), config.n_rot);
  }
  return base::OkStatus();
}

// Features of these architectures' files that change the computation and are not supported.
Status RefuseFeatures(const Keys& keys, const Config& config) {
  for (const std::string_view name : {"expert_count", "expert_used_count"}) {
    KVASIR_ASSIGN_OR_RETURN(const int64_t experts, keys.Int(name, 0, INT64_MAX, 0));
    if (experts != 0) {
      return base::Unimplemented("key {} is {}, models with experts are not supported",
                                 Quote(keys.Key(name)), experts);
    }
  }
  constexpr std::string_view kWindow = "attention.sliding_window";
  KVASIR_ASSIGN_OR_RETURN(const int64_t window, keys.Int(kWindow, 0, INT64_MAX, 0));
  if (window != 0 && window < config.n_ctx_train) {
    return base::Unimplemented(
        "key {} is {}, windows shorter than the context of {} are not "
        "supported for {}",
        Quote(keys.Key(kWindow)), window, config.n_ctx_train, Name(config.architecture));
  }
  return base::OkStatus();
}

Status ReadKeys(const File& file, Config& config) {
  auto info = FindArchitecture(file);
  if (absl::IsNotFound(info.status())) {
    return base::InvalidArgument("{}", base::ToStd(info.status().message()));
  }
  KVASIR_RETURN_IF_ERROR(info.status());
  config.architecture = (*info)->architecture;
  config.rope_interleaved = (*info)->rope_interleaved;
  const Keys keys(file, (*info)->name);
  KVASIR_RETURN_IF_ERROR(ReadSizes(keys, config));
  KVASIR_RETURN_IF_ERROR(ReadHeads(keys, config));
  KVASIR_RETURN_IF_ERROR(ReadRope(keys, config));
  KVASIR_RETURN_IF_ERROR(RefuseFeatures(keys, config));
  KVASIR_RETURN_IF_ERROR(ReadTensorFacts(file, config));
  KVASIR_ASSIGN_OR_RETURN(const int64_t vocab_size,
                          keys.Int("vocab_size", 1, INT32_MAX, config.n_vocab));
  if (vocab_size != config.n_vocab) {
    return base::InvalidArgument("key {} is {}, tensor 'token_embd.weight' has {} rows",
                                 Quote(keys.Key("vocab_size")), vocab_size, config.n_vocab);
  }
  return base::OkStatus();
}

}  // namespace

std::string_view Name(Architecture architecture) {
  for (const ArchitectureInfo& info : kArchitectures) {
    if (info.architecture == architecture) return info.name;
  }
  return "";
}

StatusOr<Config> Config::FromFile(const File& file) {
  Config config;
  KVASIR_RETURN_IF_ERROR(ReadKeys(file, config));
  KVASIR_RETURN_IF_ERROR(CheckTensors(file, config));
  KVASIR_RETURN_IF_ERROR(ReadVocabularyFacts(file, config));
  return config;
}

}  // namespace kvasir::model

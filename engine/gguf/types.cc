#include "engine/gguf/types.h"

#include <array>

#include "engine/base/check.h"

namespace kvasir::gguf {
namespace {

// Indexed by type id. Ids 4, 5, 31–33 and 36–38 were removed from the format.
constexpr std::array<std::string_view, 41> kTypeNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4"};

constexpr TypeInfo kF32{"F32", 1, 4};
constexpr TypeInfo kF16{"F16", 1, 2};
constexpr TypeInfo kBF16{"BF16", 1, 2};
constexpr TypeInfo kQ4_0{"Q4_0", 32, 18};
constexpr TypeInfo kQ4_1{"Q4_1", 32, 20};
constexpr TypeInfo kQ5_0{"Q5_0", 32, 22};
constexpr TypeInfo kQ5_1{"Q5_1", 32, 24};
constexpr TypeInfo kQ8_0{"Q8_0", 32, 34};
constexpr TypeInfo kQ4_K{"Q4_K", 256, 144};
constexpr TypeInfo kQ5_K{"Q5_K", 256, 176};
constexpr TypeInfo kQ6_K{"Q6_K", 256, 210};

const TypeInfo* Find(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return &kF32;
    case TensorType::kF16:
      return &kF16;
    case TensorType::kBF16:
      return &kBF16;
    case TensorType::kQ4_0:
      return &kQ4_0;
    case TensorType::kQ4_1:
      return &kQ4_1;
    case TensorType::kQ5_0:
      return &kQ5_0;
    case TensorType::kQ5_1:
      return &kQ5_1;
    case TensorType::kQ8_0:
      return &kQ8_0;
    case TensorType::kQ4_K:
      return &kQ4_K;
    case TensorType::kQ5_K:
      return &kQ5_K;
    case TensorType::kQ6_K:
      return &kQ6_K;
  }
  return nullptr;
}

}  // namespace

const TypeInfo& Info(TensorType type) {
  const TypeInfo* info = Find(type);
  KVASIR_CHECK(info != nullptr);
  return *info;
}

bool IsSupportedTypeId(uint32_t id) { return Find(static_cast<TensorType>(id)) != nullptr; }

std::string_view NameOfTypeId(uint32_t id) {
  return id < kTypeNames.size() ? kTypeNames[id] : std::string_view();
}

}  // namespace kvasir::gguf

// Any bytes as a model file: Parse refuses them, or everything it returns can be read: every value,
// every tensor's data, the model's configuration.
#include <cstdint>
#include <vector>

#include "engine/base/check.h"
#include "engine/gguf/file.h"
#include "engine/model/config.h"

namespace {

using kvasir::gguf::Array;
using kvasir::gguf::File;
using kvasir::gguf::Tensor;
using kvasir::gguf::Value;

// Reads every byte that `value` refers to; the sum only keeps the reads.
uint64_t Touch(const Value& value) {
  uint64_t sum = 0;
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    for (const char c : *text) sum += static_cast<uint8_t>(c);
  }
  if (const auto* array = std::get_if<Array>(&value)) {
    sum += array->size();
    if (const auto* texts = std::get_if<std::vector<std::string_view>>(&array->values)) {
      for (const auto text : *texts) sum += Touch(Value(text));
    }
  }
  return sum;
}

void Read(const File& file, const Tensor& tensor) {
  KVASIR_CHECK(file.FindTensor(tensor.name) == &tensor);
  KVASIR_CHECK(tensor.rows() >= 1 && tensor.columns() >= 1);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  kvasir::gguf::Dequantize(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  file.Release(tensor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = File::Parse({data, size});
  if (!file.ok()) {
    KVASIR_CHECK(!file.status().message().empty());
    return 0;
  }
  volatile uint64_t sum = 0;
  for (const auto& [key, value] : (*file)->metadata()) {
    sum = sum + Touch(value);
    (void)(*file)->GetInt(key);
    (void)(*file)->GetFloat(key);
  }
  for (const Tensor& tensor : (*file)->tensors()) Read(**file, tensor);
  (void)kvasir::model::Config::FromFile(**file);
  return 0;
}

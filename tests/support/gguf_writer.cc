#include "tests/support/gguf_writer.h"

#include <utility>

#include "engine/base/check.h"

namespace kvasir::testing {
namespace {

constexpr uint64_t kAlignment = 32;
// Ids of value types.
constexpr uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9;

template <typename T>
void Append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendText(std::string& out, std::string_view text) {
  Append<uint64_t>(out, text.size());
  out.append(text);
}

void Pad(std::string& out) { out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment); }

}  // namespace

void GgufWriter::AddKey(std::string_view key, uint32_t type) {
  ++keys_;
  AppendText(metadata_, key);
  Append(metadata_, type);
}

void GgufWriter::AddU32(std::string_view key, uint32_t value) {
  AddKey(key, kU32);
  Append(metadata_, value);
}

void GgufWriter::AddF32(std::string_view key, float value) {
  AddKey(key, kF32);
  Append(metadata_, value);
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  AddKey(key, kBool);
  Append<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  AddKey(key, kText);
  AppendText(metadata_, value);
}

void GgufWriter::AddStrings(std::string_view key, std::span<const std::string> values) {
  AddKey(key, kArray);
  Append(metadata_, kText);
  Append<uint64_t>(metadata_, values.size());
  for (const std::string& value : values) AppendText(metadata_, value);
}

void GgufWriter::AddI32s(std::string_view key, std::span<const int32_t> values) {
  AddKey(key, kArray);
  Append(metadata_, kI32);
  Append<uint64_t>(metadata_, values.size());
  for (const int32_t value : values) Append(metadata_, value);
}

void GgufWriter::AddTensor(std::string_view name, std::vector<int64_t> dims, gguf::TensorType type,
                           std::string data) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  const gguf::TypeInfo& info = gguf::Info(type);
  KVASIR_CHECK(dims[0] % info.block_elements == 0);
  KVASIR_CHECK(data.size() ==
               static_cast<size_t>(elements / info.block_elements * info.block_bytes));
  tensors_.push_back({std::string(name), std::move(dims), type, std::move(data)});
}

std::string GgufWriter::Bytes() const {
  std::string out = "GGUF";
  Append<uint32_t>(out, 3);
  Append<uint64_t>(out, tensors_.size());
  Append(out, keys_);
  out += metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendText(out, tensor.name);
    Append(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const int64_t dim : tensor.dims) Append(out, dim);
    Append(out, static_cast<uint32_t>(tensor.type));
    Append(out, offset);
    offset += (tensor.data.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  Pad(out);
  for (const Tensor& tensor : tensors_) {
    out += tensor.data;
    Pad(out);
  }
  return out;
}

}  // namespace kvasir::testing

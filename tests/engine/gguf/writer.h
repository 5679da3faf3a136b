// GgufWriter: bytes of a GGUF file, right or wrong on purpose: every count, length and offset can
// be set apart from what is written.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::gguf {

using Bytes = std::vector<uint8_t>;

// Ids of metadata value types.
inline constexpr uint32_t kTypeU8 = 0;
inline constexpr uint32_t kTypeI32 = 5;
inline constexpr uint32_t kTypeU32 = 4;
inline constexpr uint32_t kTypeF32 = 6;
inline constexpr uint32_t kTypeBool = 7;
inline constexpr uint32_t kTypeString = 8;
inline constexpr uint32_t kTypeArray = 9;
inline constexpr uint32_t kTypeU64 = 10;

// Appends `value` as it lies in memory (little-endian).
template <typename T>
void Append(Bytes& bytes, T value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  bytes.insert(bytes.end(), p, p + sizeof(T));
}

// Appends the length of `text` as u64, then its bytes.
inline void AppendString(Bytes& bytes, std::string_view text) {
  Append<uint64_t>(bytes, text.size());
  bytes.insert(bytes.end(), text.begin(), text.end());
}

class GgufWriter {
 public:
  // A key with a value of type `type` whose bytes are `value`.
  GgufWriter& Key(std::string_view key, uint32_t type, const Bytes& value) {
    AppendString(keys_, key);
    Append(keys_, type);
    keys_.insert(keys_.end(), value.begin(), value.end());
    ++key_count_;
    return *this;
  }

  template <typename T>
  GgufWriter& Scalar(std::string_view key, uint32_t type, T value) {
    Bytes bytes;
    Append(bytes, value);
    return Key(key, type, bytes);
  }

  GgufWriter& U32(std::string_view key, uint32_t value) { return Scalar(key, kTypeU32, value); }
  GgufWriter& F32(std::string_view key, float value) { return Scalar(key, kTypeF32, value); }

  GgufWriter& String(std::string_view key, std::string_view value) {
    Bytes bytes;
    AppendString(bytes, value);
    return Key(key, kTypeString, bytes);
  }

  // An array that claims `count` elements of `element_type`; `elements` are their bytes.
  GgufWriter& Array(std::string_view key, uint32_t element_type, uint64_t count,
                    const Bytes& elements) {
    Bytes bytes;
    Append(bytes, element_type);
    Append(bytes, count);
    bytes.insert(bytes.end(), elements.begin(), elements.end());
    return Key(key, kTypeArray, bytes);
  }

  GgufWriter& Strings(std::string_view key, const std::vector<std::string>& values) {
    Bytes bytes;
    for (const std::string& value : values) AppendString(bytes, value);
    return Array(key, kTypeString, values.size(), bytes);
  }

  template <typename T>
  GgufWriter& Numbers(std::string_view key, uint32_t element_type, const std::vector<T>& values) {
    Bytes bytes;
    for (const T value : values) Append(bytes, value);
    return Array(key, element_type, values.size(), bytes);
  }

  // An entry of the tensor table only.
  GgufWriter& Entry(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                    uint64_t offset) {
    AppendString(entries_, name);
    Append(entries_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) Append(entries_, dim);
    Append(entries_, type);
    Append(entries_, offset);
    ++tensor_count_;
    return *this;
  }

  // A tensor with its data, placed at the next multiple of 32.
  GgufWriter& Tensor(std::string_view name, const std::vector<uint64_t>& dims, uint32_t type,
                     const Bytes& data) {
    data_.resize((data_.size() + 31) / 32 * 32);
    Entry(name, dims, type, data_.size());
    data_.insert(data_.end(), data.begin(), data.end());
    return *this;
  }

  GgufWriter& F32Tensor(std::string_view name, const std::vector<uint64_t>& dims,
                        const std::vector<float>& values) {
    Bytes bytes;
    for (const float value : values) Append(bytes, value);
    return Tensor(name, dims, 0, bytes);
  }

  // Bytes at the end of the data section.
  GgufWriter& Data(const Bytes& data) {
    data_.insert(data_.end(), data.begin(), data.end());
    return *this;
  }

  GgufWriter& ClaimKeys(uint64_t count) {
    claimed_keys_ = count;
    return *this;
  }
  GgufWriter& ClaimTensors(uint64_t count) {
    claimed_tensors_ = count;
    return *this;
  }

  // The file: header, keys, table, padding to 32, data.
  Bytes Build(uint32_t version = 3) const {
    Bytes bytes = {'G', 'G', 'U', 'F'};
    Append(bytes, version);
    Append(bytes, claimed_tensors_.value_or(tensor_count_));
    Append(bytes, claimed_keys_.value_or(key_count_));
    bytes.insert(bytes.end(), keys_.begin(), keys_.end());
    bytes.insert(bytes.end(), entries_.begin(), entries_.end());
    if (tensor_count_ > 0) bytes.resize((bytes.size() + 31) / 32 * 32);
    bytes.insert(bytes.end(), data_.begin(), data_.end());
    return bytes;
  }

 private:
  Bytes keys_, entries_, data_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::optional<uint64_t> claimed_keys_, claimed_tensors_;
};

}  // namespace kvasir::gguf

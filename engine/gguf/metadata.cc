#include <fmt/format.h>

#include <cstring>
#include <string>

#include "engine/gguf/parse.h"
#include "engine/gguf/quote.h"

namespace kvasir::gguf {
namespace {

enum ValueType : uint32_t {
  kValueU8 = 0,
  kValueI8 = 1,
  kValueU16 = 2,
  kValueI16 = 3,
  kValueU32 = 4,
  kValueI32 = 5,
  kValueF32 = 6,
  kValueBool = 7,
  kValueString = 8,
  kValueArray = 9,
  kValueU64 = 10,
  kValueI64 = 11,
  kValueF64 = 12,
};

// The fewest bytes a value of `type` can take in the file: the whole value, or the length field of
// a string. 0 for a type that does not exist or cannot be an array element.
uint64_t ElementBytesMin(uint32_t type) {
  switch (type) {
    case kValueU8:
    case kValueI8:
    case kValueBool:
      return 1;
    case kValueU16:
    case kValueI16:
      return 2;
    case kValueU32:
    case kValueI32:
    case kValueF32:
      return 4;
    case kValueString:
    case kValueU64:
    case kValueI64:
    case kValueF64:
      return 8;
    default:
      return 0;
  }
}

// The next value of type Stored, as Widened.
template <typename Stored, typename Widened>
StatusOr<Widened> ReadAs(Reader& reader, std::string_view what) {
  KVASIR_ASSIGN_OR_RETURN(const Stored value, reader.Read<Stored>(what));
  return static_cast<Widened>(value);
}

StatusOr<bool> ReadBool(Reader& reader, std::string_view what) {
  KVASIR_ASSIGN_OR_RETURN(const uint8_t value, reader.Read<uint8_t>(what));
  if (value > 1) {
    return base::InvalidArgument("{} at byte {} is a bool of {}, neither 0 nor 1", what,
                                 reader.offset() - 1, value);
  }
  return value == 1;
}

// The next `count` values of type Stored, as Widened. REQUIRES: count is checked against the bytes
// left.
template <typename Stored, typename Widened>
StatusOr<Value> ReadNumbers(Reader& reader, std::string_view what, uint64_t count) {
  KVASIR_ASSIGN_OR_RETURN(const auto bytes, reader.ReadBytes(what, count * sizeof(Stored)));
  std::vector<Widened> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<Widened>(value);
  }
  return Value(Array{std::move(values)});
}

// As ReadNumbers, with `read` for each element.
template <typename T, typename Read>
StatusOr<Value> ReadElements(uint64_t count, Read read) {
  std::vector<T> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    KVASIR_ASSIGN_OR_RETURN(T value, read());
    values.push_back(value);
  }
  return Value(Array{std::move(values)});
}

StatusOr<Value> ReadArrayOf(Reader& reader, std::string_view what, uint32_t type, uint64_t count) {
  switch (type) {
    case kValueU8:
      return ReadNumbers<uint8_t, uint64_t>(reader, what, count);
    case kValueU16:
      return ReadNumbers<uint16_t, uint64_t>(reader, what, count);
    case kValueU32:
      return ReadNumbers<uint32_t, uint64_t>(reader, what, count);
    case kValueU64:
      return ReadNumbers<uint64_t, uint64_t>(reader, what, count);
    case kValueI8:
      return ReadNumbers<int8_t, int64_t>(reader, what, count);
    case kValueI16:
      return ReadNumbers<int16_t, int64_t>(reader, what, count);
    case kValueI32:
      return ReadNumbers<int32_t, int64_t>(reader, what, count);
    case kValueI64:
      return ReadNumbers<int64_t, int64_t>(reader, what, count);
    case kValueF32:
      return ReadNumbers<float, double>(reader, what, count);
    case kValueF64:
      return ReadNumbers<double, double>(reader, what, count);
    case kValueBool:
      return ReadElements<uint64_t>(count, [&] { return ReadBool(reader, what); });
    default:
      return ReadElements<std::string_view>(count, [&] { return reader.ReadString(what); });
  }
}

// `values_left` is what all arrays from here on may hold together.
StatusOr<Value> ReadArray(Reader& reader, std::string_view what, uint64_t& values_left) {
  const uint64_t at = reader.offset();
  KVASIR_ASSIGN_OR_RETURN(const uint32_t type, reader.Read<uint32_t>(what));
  KVASIR_ASSIGN_OR_RETURN(const uint64_t count, reader.Read<uint64_t>(what));
  if (type == kValueArray) {
    return base::InvalidArgument("{} at byte {} is an array of arrays", what, at);
  }
  const uint64_t element_bytes = ElementBytesMin(type);
  if (element_bytes == 0) {
    return base::InvalidArgument("{} at byte {} is an array of unknown type {}", what, at, type);
  }
  if (count > reader.left() / element_bytes) {
    return base::InvalidArgument(
        "{} at byte {} is an array of {} values of at least {} bytes each, {} bytes are left", what,
        at, count, element_bytes, reader.left());
  }
  if (count > values_left) {
    return base::InvalidArgument("{} at byte {} is an array of {} values, {} of {} are left", what,
                                 at, count, values_left, kArrayValuesMax);
  }
  values_left -= count;
  return ReadArrayOf(reader, what, type, count);
}

template <typename T>
StatusOr<Value> AsValue(StatusOr<T> value) {
  if (!value.ok()) return std::move(value).status();
  return Value(std::in_place_type<T>, *value);
}

StatusOr<Value> ReadValue(Reader& reader, std::string_view what, uint64_t& values_left) {
  const uint64_t at = reader.offset();
  KVASIR_ASSIGN_OR_RETURN(const uint32_t type, reader.Read<uint32_t>(what));
  switch (type) {
    case kValueU8:
      return AsValue(ReadAs<uint8_t, uint64_t>(reader, what));
    case kValueU16:
      return AsValue(ReadAs<uint16_t, uint64_t>(reader, what));
    case kValueU32:
      return AsValue(ReadAs<uint32_t, uint64_t>(reader, what));
    case kValueU64:
      return AsValue(ReadAs<uint64_t, uint64_t>(reader, what));
    case kValueI8:
      return AsValue(ReadAs<int8_t, int64_t>(reader, what));
    case kValueI16:
      return AsValue(ReadAs<int16_t, int64_t>(reader, what));
    case kValueI32:
      return AsValue(ReadAs<int32_t, int64_t>(reader, what));
    case kValueI64:
      return AsValue(ReadAs<int64_t, int64_t>(reader, what));
    case kValueF32:
      return AsValue(ReadAs<float, double>(reader, what));
    case kValueF64:
      return AsValue(ReadAs<double, double>(reader, what));
    case kValueBool:
      return AsValue(ReadBool(reader, what));
    case kValueString:
      return AsValue(reader.ReadString(what));
    case kValueArray:
      return ReadArray(reader, what, values_left);
    default:
      return base::InvalidArgument("{} at byte {} is of unknown type {}", what, at, type);
  }
}

Status CheckKey(std::string_view key, uint64_t at) {
  if (key.empty()) return base::InvalidArgument("empty key at byte {}", at);
  if (key.size() > kKeyBytesMax) {
    return base::InvalidArgument("key {} at byte {} has {} bytes, at most {} are allowed",
                                 Quote(key), at, key.size(), kKeyBytesMax);
  }
  if (key.find('\0') != std::string_view::npos) {
    return base::InvalidArgument("key {} at byte {} holds a NUL byte", Quote(key), at);
  }
  return base::OkStatus();
}

}  // namespace

StatusOr<Metadata> ReadMetadata(Reader& reader, uint64_t key_count) {
  constexpr uint64_t kEntryBytesMin = 8 + 1 + 4 + 1;  // key length, key, type, value
  if (key_count > reader.left() / kEntryBytesMin || key_count > kKeysMax) {
    return base::InvalidArgument(
        "key count {} at byte 16: {} bytes are left, a key takes at least {}; at most {} keys are "
        "allowed",
        key_count, reader.left(), kEntryBytesMin, kKeysMax);
  }
  Metadata metadata;
  uint64_t values_left = kArrayValuesMax;
  for (uint64_t i = 0; i < key_count; ++i) {
    const uint64_t at = reader.offset();
    KVASIR_ASSIGN_OR_RETURN(const std::string_view key, reader.ReadString("key"));
    KVASIR_RETURN_IF_ERROR(CheckKey(key, at));
    const std::string what = fmt::format("value of key {}", Quote(key));
    KVASIR_ASSIGN_OR_RETURN(Value value, ReadValue(reader, what, values_left));
    if (!metadata.try_emplace(key, std::move(value)).second) {
      return base::InvalidArgument("duplicate key {} at byte {}", Quote(key), at);
    }
  }
  return metadata;
}

}  // namespace kvasir::gguf

#include "engine/gguf/file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/gguf/parse.h"
#include "engine/gguf/quote.h"

namespace kvasir::gguf {
namespace {

std::string_view TypeName(const Value& value) {
  static constexpr std::string_view kNames[] = {
      "an unsigned integer", "a signed integer", "a float", "a bool", "a string", "an array"};
  static_assert(std::size(kNames) == std::variant_size_v<Value>);
  return kNames[value.index()];
}

Status WrongType(std::string_view key, const Value& value, std::string_view wanted) {
  return base::InvalidArgument("key {} is {}, {} is needed", Quote(key), TypeName(value), wanted);
}

// general.alignment, or the default when the key is absent.
StatusOr<uint64_t> ReadAlignment(const Metadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const auto found = metadata.find(kKey);
  if (found == metadata.end()) return kAlignmentDefault;
  const auto* alignment = std::get_if<uint64_t>(&found->second);
  if (alignment == nullptr) return WrongType(kKey, found->second, "an unsigned integer");
  if (!std::has_single_bit(*alignment) || *alignment < kAlignmentMin) {
    return base::InvalidArgument("key {} is {}, no power of two of at least {}", Quote(kKey),
                                 *alignment, kAlignmentMin);
  }
  return *alignment;
}

}  // namespace

size_t Array::size() const {
  return std::visit([](const auto& v) { return v.size(); }, values);
}

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

StatusOr<Header> ReadHeader(Reader& reader) {
  Header header;
  KVASIR_ASSIGN_OR_RETURN(const auto magic, reader.ReadBytes("magic", 4));
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    return base::InvalidArgument(
        "magic {} at byte 0, a GGUF file starts with 'GGUF'",
        Quote({reinterpret_cast<const char*>(magic.data()), magic.size()}));
  }
  KVASIR_ASSIGN_OR_RETURN(header.version, reader.Read<uint32_t>("version"));
  if (header.version == 0x02000000 || header.version == 0x03000000) {
    return base::InvalidArgument("version {} at byte 4: the file is big-endian", header.version);
  }
  if (header.version != 2 && header.version != 3) {
    return base::InvalidArgument("version {} at byte 4, versions 2 and 3 are supported",
                                 header.version);
  }
  KVASIR_ASSIGN_OR_RETURN(header.tensor_count, reader.Read<uint64_t>("tensor count"));
  KVASIR_ASSIGN_OR_RETURN(header.key_count, reader.Read<uint64_t>("key count"));
  return header;
}

struct File::State {
  std::unique_ptr<base::MappedFile> map;  // null when the bytes are the caller's
  uint32_t version = 0;
  uint64_t alignment = 0;
  Metadata metadata;
  std::vector<Tensor> tensors;
  std::map<std::string_view, const Tensor*> by_name;
};

File::File() : state_(std::make_unique<State>()) {}
File::~File() = default;

StatusOr<std::unique_ptr<File>> File::Parse(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  KVASIR_ASSIGN_OR_RETURN(const Header header, ReadHeader(reader));
  std::unique_ptr<File> file(new File());
  State& state = *file->state_;
  state.version = header.version;
  KVASIR_ASSIGN_OR_RETURN(state.metadata, ReadMetadata(reader, header.key_count));
  KVASIR_ASSIGN_OR_RETURN(state.alignment, ReadAlignment(state.metadata));
  KVASIR_ASSIGN_OR_RETURN(state.tensors,
                          ReadTensors(reader, header.tensor_count, state.alignment, bytes));
  for (const Tensor& tensor : state.tensors) state.by_name.emplace(tensor.name, &tensor);
  return file;
}

StatusOr<std::unique_ptr<File>> File::Open(const std::string& path) {
  KVASIR_ASSIGN_OR_RETURN(auto map, base::MappedFile::Open(path));
  auto file = Parse(map->bytes());
  if (!file.ok()) return base::Annotate(file.status(), path);
  (*file)->state_->map = std::move(map);
  return file;
}

uint32_t File::version() const { return state_->version; }
size_t File::alignment() const { return state_->alignment; }
const std::map<std::string_view, Value>& File::metadata() const { return state_->metadata; }
const std::vector<Tensor>& File::tensors() const { return state_->tensors; }

bool File::Has(std::string_view key) const { return state_->metadata.contains(key); }

StatusOr<const Value*> File::Get(std::string_view key) const {
  const auto found = state_->metadata.find(key);
  if (found == state_->metadata.end()) {
    return base::NotFound("key {} is missing from the model file", Quote(key));
  }
  return &found->second;
}

StatusOr<int64_t> File::GetInt(std::string_view key) const {
  KVASIR_ASSIGN_OR_RETURN(const Value* value, Get(key));
  if (const auto* number = std::get_if<int64_t>(value)) return *number;
  const auto* number = std::get_if<uint64_t>(value);
  if (number == nullptr) return WrongType(key, *value, "an integer");
  if (*number > uint64_t{INT64_MAX}) {
    return base::InvalidArgument("key {} is {}, at most {} is allowed", Quote(key), *number,
                                 INT64_MAX);
  }
  return static_cast<int64_t>(*number);
}

StatusOr<double> File::GetFloat(std::string_view key) const {
  KVASIR_ASSIGN_OR_RETURN(const Value* value, Get(key));
  const auto* number = std::get_if<double>(value);
  if (number == nullptr) return WrongType(key, *value, "a float");
  if (!std::isfinite(*number)) {
    return base::InvalidArgument("key {} is {}, a finite number is needed", Quote(key), *number);
  }
  return *number;
}

StatusOr<std::string_view> File::GetString(std::string_view key) const {
  KVASIR_ASSIGN_OR_RETURN(const Value* value, Get(key));
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr) return WrongType(key, *value, "a string");
  return *text;
}

StatusOr<bool> File::GetBool(std::string_view key) const {
  KVASIR_ASSIGN_OR_RETURN(const Value* value, Get(key));
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) return WrongType(key, *value, "a bool");
  return *flag;
}

StatusOr<const Array*> File::GetArray(std::string_view key) const {
  KVASIR_ASSIGN_OR_RETURN(const Value* value, Get(key));
  const auto* array = std::get_if<Array>(value);
  if (array == nullptr) return WrongType(key, *value, "an array");
  return array;
}

const Tensor* File::FindTensor(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : found->second;
}

void File::Release(const Tensor& tensor) const {
  if (state_->map != nullptr) state_->map->Release(tensor.file_offset, tensor.data.size());
}

}  // namespace kvasir::gguf

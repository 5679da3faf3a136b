#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "engine/gguf/parse.h"
#include "engine/gguf/quote.h"

namespace kvasir::gguf {
namespace {

// An entry of the table: the tensor, and what is needed to place its data.
struct Entry {
  Tensor tensor;
  uint64_t offset = 0;  // of the data, relative to the start of the data section
  uint64_t bytes = 0;   // of the data
};

StatusOr<std::string_view> ReadName(Reader& reader) {
  const uint64_t at = reader.offset();
  KVASIR_ASSIGN_OR_RETURN(const std::string_view name, reader.ReadString("tensor name"));
  if (name.empty()) return base::InvalidArgument("empty tensor name at byte {}", at);
  if (name.size() > kTensorNameBytesMax) {
    return base::InvalidArgument("tensor name {} at byte {} has {} bytes, at most {} are allowed",
                                 Quote(name), at, name.size(), kTensorNameBytesMax);
  }
  if (name.find('\0') != std::string_view::npos) {
    return base::InvalidArgument("tensor name {} at byte {} holds a NUL byte", Quote(name), at);
  }
  return name;
}

StatusOr<std::vector<int64_t>> ReadDims(Reader& reader, const std::string& what) {
  KVASIR_ASSIGN_OR_RETURN(const uint32_t count, reader.Read<uint32_t>(what));
  if (count < 1 || count > kTensorDimsMax) {
    return base::InvalidArgument("{} has {} dimensions, 1 to {} are allowed", what, count,
                                 kTensorDimsMax);
  }
  std::vector<int64_t> dims;
  uint64_t elements = 1;
  for (uint32_t i = 0; i < count; ++i) {
    KVASIR_ASSIGN_OR_RETURN(const uint64_t dim, reader.Read<uint64_t>(what));
    if (dim < 1 || dim > static_cast<uint64_t>(INT64_MAX)) {
      return base::InvalidArgument("{} has dimension {} of {}, 1 to {} are allowed", what, i, dim,
                                   INT64_MAX);
    }
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > uint64_t{INT64_MAX}) {
      return base::InvalidArgument("{} has more than {} elements", what, INT64_MAX);
    }
    dims.push_back(static_cast<int64_t>(dim));
  }
  return dims;
}

StatusOr<TensorType> ReadType(Reader& reader, const std::string& what) {
  KVASIR_ASSIGN_OR_RETURN(const uint32_t id, reader.Read<uint32_t>(what));
  if (IsSupportedTypeId(id)) return static_cast<TensorType>(id);
  const std::string_view name = NameOfTypeId(id);
  if (name.empty()) return base::InvalidArgument("{} is of unknown type {}", what, id);
  return base::InvalidArgument("{} is of type {} ({}), which is not supported", what, name, id);
}

// The bytes of the data, checked against all that the file can hold.
StatusOr<uint64_t> DataBytes(const Tensor& tensor, const std::string& what, uint64_t file_bytes) {
  const TypeInfo& info = Info(tensor.type);
  const auto block_elements = static_cast<uint64_t>(info.block_elements);
  const auto block_bytes = static_cast<uint64_t>(info.block_bytes);
  if (static_cast<uint64_t>(tensor.columns()) % block_elements != 0) {
    return base::InvalidArgument("{} of type {} has rows of {} elements, no multiple of {}", what,
                                 info.name, tensor.columns(), block_elements);
  }
  const uint64_t blocks = static_cast<uint64_t>(tensor.elements()) / block_elements;
  if (blocks > file_bytes / block_bytes) {
    return base::InvalidArgument("{} takes {} blocks of {} bytes, the file has {} bytes", what,
                                 blocks, block_bytes, file_bytes);
  }
  return blocks * block_bytes;
}

StatusOr<Entry> ReadEntry(Reader& reader, uint64_t alignment, uint64_t file_bytes) {
  Entry entry;
  const uint64_t at = reader.offset();
  KVASIR_ASSIGN_OR_RETURN(entry.tensor.name, ReadName(reader));
  const std::string what =
      fmt::format("tensor {} (entry at byte {})", Quote(entry.tensor.name), at);
  KVASIR_ASSIGN_OR_RETURN(entry.tensor.dims, ReadDims(reader, what));
  KVASIR_ASSIGN_OR_RETURN(entry.tensor.type, ReadType(reader, what));
  KVASIR_ASSIGN_OR_RETURN(entry.offset, reader.Read<uint64_t>(what));
  if (entry.offset % alignment != 0) {
    return base::InvalidArgument("{} has its data at offset {}, no multiple of the alignment {}",
                                 what, entry.offset, alignment);
  }
  KVASIR_ASSIGN_OR_RETURN(entry.bytes, DataBytes(entry.tensor, what, file_bytes));
  return entry;
}

// The start of the data section: the end of the table, padded to the alignment.
StatusOr<uint64_t> DataStart(uint64_t table_end, uint64_t alignment, uint64_t file_bytes) {
  const uint64_t past = table_end % alignment;
  const uint64_t padding = past == 0 ? 0 : alignment - past;
  if (padding > file_bytes - table_end) {
    return base::InvalidArgument(
        "the tensor table ends at byte {} and takes {} bytes of padding to alignment {}, {} are "
        "left",
        table_end, padding, alignment, file_bytes - table_end);
  }
  return table_end + padding;
}

Status PlaceData(Entry& entry, uint64_t data_start, std::span<const uint8_t> bytes) {
  const uint64_t data_bytes = bytes.size() - data_start;
  if (entry.offset > data_bytes || entry.bytes > data_bytes - entry.offset) {
    return base::InvalidArgument(
        "tensor {} has {} bytes at offset {}, the data section from byte {} on has {}",
        Quote(entry.tensor.name), entry.bytes, entry.offset, data_start, data_bytes);
  }
  entry.tensor.file_offset = data_start + entry.offset;
  entry.tensor.data = bytes.subspan(entry.tensor.file_offset, entry.bytes);
  return base::OkStatus();
}

Status CheckNoOverlap(const std::vector<Entry>& entries) {
  std::vector<const Entry*> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Entry& before = *order[i - 1];
    if (order[i]->offset - before.offset < before.bytes) {
      return base::InvalidArgument(
          "tensors {} ({} bytes at offset {}) and {} (at offset {}) overlap",
          Quote(before.tensor.name), before.bytes, before.offset, Quote(order[i]->tensor.name),
          order[i]->offset);
    }
  }
  return base::OkStatus();
}

}  // namespace

StatusOr<std::vector<Tensor>> ReadTensors(Reader& reader, uint64_t tensor_count, uint64_t alignment,
                                          std::span<const uint8_t> bytes) {
  constexpr uint64_t kEntryBytesMin = 8 + 1 + 4 + 8 + 4 + 8;  // name, dims, type, offset
  if (tensor_count > reader.left() / kEntryBytesMin || tensor_count > kTensorsMax) {
    return base::InvalidArgument(
        "tensor count {} at byte 8: {} bytes are left after the keys, a tensor takes at least {}; "
        "at most {} tensors are allowed",
        tensor_count, reader.left(), kEntryBytesMin, kTensorsMax);
  }
  std::vector<Entry> entries;
  entries.reserve(tensor_count);
  std::set<std::string_view> names;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    KVASIR_ASSIGN_OR_RETURN(Entry entry, ReadEntry(reader, alignment, bytes.size()));
    if (!names.insert(entry.tensor.name).second) {
      return base::InvalidArgument("duplicate tensor name {}", Quote(entry.tensor.name));
    }
    entries.push_back(std::move(entry));
  }
  std::vector<Tensor> tensors;
  if (entries.empty()) return tensors;
  KVASIR_ASSIGN_OR_RETURN(const uint64_t data_start,
                          DataStart(reader.offset(), alignment, bytes.size()));
  for (Entry& entry : entries) KVASIR_RETURN_IF_ERROR(PlaceData(entry, data_start, bytes));
  KVASIR_RETURN_IF_ERROR(CheckNoOverlap(entries));
  tensors.reserve(entries.size());
  for (Entry& entry : entries) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

}  // namespace kvasir::gguf

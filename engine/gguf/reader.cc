#include "engine/gguf/reader.h"

namespace kvasir::gguf {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF numbers are copied as they lie");

StatusOr<std::span<const uint8_t>> Reader::ReadBytes(std::string_view what, uint64_t size) {
  if (left() < size) return PastEnd(what, size);
  const auto bytes = bytes_.subspan(offset_, size);
  offset_ += size;
  return bytes;
}

StatusOr<std::string_view> Reader::ReadString(std::string_view what) {
  KVASIR_ASSIGN_OR_RETURN(const uint64_t size, Read<uint64_t>(what));
  KVASIR_ASSIGN_OR_RETURN(const auto bytes, ReadBytes(what, size));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status Reader::PastEnd(std::string_view what, uint64_t needed) const {
  return base::InvalidArgument("{} at byte {} takes {} bytes, {} are left", what, offset_, needed,
                               left());
}

}  // namespace kvasir::gguf

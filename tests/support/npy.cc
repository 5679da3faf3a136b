#include "tests/support/npy.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace kvasir::test {
namespace {

template <typename T>
base::StatusOr<NpyArray<T>> Read(const std::filesystem::path& path, const std::string& type) {
  const auto fail = [&](const char* what) {
    return base::InvalidArgument("{}: {}", path.string(), what);
  };
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0) return fail("no .npy file");
  const size_t header_bytes = static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  if (bytes.size() < 10 + header_bytes) return fail("ends in its header");
  const std::string header = bytes.substr(10, header_bytes);
  if (header.find("'descr': '" + type + "'") == std::string::npos) return fail("another type");
  if (header.find("'fortran_order': False") == std::string::npos) return fail("not in C order");
  std::smatch shape;
  static const std::regex pattern(R"('shape': \((\d+),\s*(\d*)\))");
  if (!std::regex_search(header, shape, pattern)) return fail("neither one nor two dimensions");
  NpyArray<T> array;
  array.rows = std::stoll(shape[1]);
  array.columns = shape[2].length() > 0 ? std::stoll(shape[2]) : 1;
  array.values.resize(array.rows * array.columns);
  if (bytes.size() != 10 + header_bytes + array.values.size() * sizeof(T))
    return fail("size and shape differ");
  bytes.copy(reinterpret_cast<char*>(array.values.data()), array.values.size() * sizeof(T),
             10 + header_bytes);
  return array;
}

}  // namespace

base::StatusOr<NpyArray<float>> ReadNpyFloat(const std::filesystem::path& path) {
  return Read<float>(path, "<f4");
}
base::StatusOr<NpyArray<int32_t>> ReadNpyInt(const std::filesystem::path& path) {
  return Read<int32_t>(path, "<i4");
}

}  // namespace kvasir::test

// File: a GGUF model file (version 2 or 3, little-endian), mapped read-only and checked completely
// when opened: header, key-values, tensor table and tensor data all lie inside the file, names are
// unique, offsets aligned. After Open no access can leave the map.
//
// Threads: immutable after Open; concurrent reads allowed.
// Source: GGUF specification (ggml docs/gguf.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/file.h"
#include "engine/base/status.h"
#include "engine/gguf/types.h"

namespace kvasir::gguf {

// A metadata array: scalars widened, strings as views into the file.
struct Array {
  std::variant<std::vector<uint64_t>,          // u8 u16 u32 u64 bool
               std::vector<int64_t>,           // i8 i16 i32 i64
               std::vector<double>,            // f32 f64
               std::vector<std::string_view>>  // string
      values;
  size_t size() const;
};

// A metadata value, widened: unsigned and bool to uint64_t / bool, signed to int64_t, floats to
// double.
using Value = std::variant<uint64_t, int64_t, double, bool, std::string_view, Array>;

struct Tensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> dims;  // as in the file: dims[0] runs fastest (columns of a row), at most 4
  std::span<const uint8_t> data;  // rows of blocks, inside the map
  size_t file_offset = 0;         // of data; a multiple of File::alignment()

  int64_t elements() const;
  int64_t columns() const { return dims[0]; }            // K: the input width of a weight
  int64_t rows() const { return elements() / dims[0]; }  // N: the output width of a weight
};

class File {
 public:
  // Maps and checks `path`. Work and memory are bounded by the bytes present, never by a claimed
  // count, and by the limits of parse.h (65,536 keys and tensors, 2^24 array values together).
  // Errors: those of MappedFile::Open; InvalidArgument naming the byte offset, key or tensor that
  //         is wrong (bad magic, version, counts past the end, nested arrays, duplicate or empty
  //         names, unsupported types, misaligned or overlapping data, ...).
  static base::StatusOr<std::unique_ptr<File>> Open(const std::string& path);
  ~File();
  // The same on bytes in memory, which must outlive the result (fuzzing, tests).
  static base::StatusOr<std::unique_ptr<File>> Parse(std::span<const uint8_t> bytes);

  uint32_t version() const;
  size_t alignment() const;
  const std::map<std::string_view, Value>& metadata() const;
  const std::vector<Tensor>& tensors() const;  // in file order

  // Typed access. Get* : NotFound when absent, InvalidArgument when of another type or out of T's
  // range; both name the key.
  base::StatusOr<int64_t> GetInt(std::string_view key) const;   // any integer type
  base::StatusOr<double> GetFloat(std::string_view key) const;  // f32 or f64; finite
  base::StatusOr<std::string_view> GetString(std::string_view key) const;
  base::StatusOr<bool> GetBool(std::string_view key) const;
  base::StatusOr<const Array*> GetArray(std::string_view key) const;
  bool Has(std::string_view key) const;

  // The tensor called `name`, or nullptr.
  const Tensor* FindTensor(std::string_view name) const;

  // Tells the kernel that the data of `tensor` is not needed soon (after repacking it).
  void Release(const Tensor& tensor) const;

 private:
  File();
  base::StatusOr<const Value*> Get(std::string_view key) const;  // NotFound when absent
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kvasir::gguf

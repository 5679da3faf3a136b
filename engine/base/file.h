// Files: read-only memory maps, whole-file reads, and writes that are durable when they return.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::base {

// MappedFile: the bytes of a file, mapped read-only for as long as the object lives. Threads: concurrent reads allowed.
class MappedFile {
 public:
  // Maps `path`. An empty file gives an empty span.
  // Errors: NotFound, PermissionDenied, InvalidArgument (no regular file), Unavailable (the map failed).
  static StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Tells the kernel that the pages of bytes()[offset, offset + size) are not needed soon; they can be read again.
  void Release(size_t offset, size_t size) const;

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  const uint8_t* data_;
  size_t size_;
};

// The whole of `path`, refused when longer than `bytes_max`.
// Errors: NotFound, PermissionDenied, InvalidArgument (too long, or no regular file), Unavailable.
StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// Replaces `path` by `contents`: written beside it, synced, renamed, directory synced. Mode 0600.
// After an error the old file is still there (after a failed directory sync: the old or the new).
// Errors: NotFound (no such directory), PermissionDenied, Unavailable.
Status WriteFileDurably(const std::string& path, std::string_view contents);

}  // namespace kvasir::base

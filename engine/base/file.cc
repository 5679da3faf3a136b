#include "engine/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace kvasir::base {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status FromErrno(std::string_view doing, const std::string& path) {
  const int error = errno;
  const char* text = std::strerror(error);
  if (error == ENOENT || error == ENOTDIR) return NotFound("{} {}: {}", doing, path, text);
  if (error == EACCES || error == EPERM) return PermissionDenied("{} {}: {}", doing, path, text);
  return Unavailable("{} {}: {}", doing, path, text);
}

// Opening a FIFO without O_NONBLOCK waits for its writer; for regular files the flag means nothing.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

StatusOr<size_t> RegularFileSize(int fd, const std::string& path) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return FromErrno("cannot stat", path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument("{} is not a regular file", path);
  return static_cast<size_t>(info.st_size);
}

}  // namespace

StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  const FileDescriptor fd(::open(path.c_str(), kReadFlags));
  if (fd.get() < 0) return FromErrno("cannot open", path);
  KVASIR_ASSIGN_OR_RETURN(const size_t size, RegularFileSize(fd.get(), path));
  const uint8_t* data = nullptr;
  if (size > 0) {
    void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (map == MAP_FAILED) return FromErrno("cannot map", path);
    data = static_cast<const uint8_t*>(map);
  }
  return std::unique_ptr<MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::Release(size_t offset, size_t size) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + size) / page * page;
  if (begin < end && end <= size_) {
    ::madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
  }
}

StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  const FileDescriptor fd(::open(path.c_str(), kReadFlags));
  if (fd.get() < 0) return FromErrno("cannot open", path);
  KVASIR_ASSIGN_OR_RETURN(const size_t size, RegularFileSize(fd.get(), path));
  if (size > bytes_max) {
    return InvalidArgument("{} has {} bytes, at most {} are read", path, size, bytes_max);
  }
  std::string contents(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(fd.get(), contents.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno("cannot read", path);
    if (got == 0) return Unavailable("{} became shorter while it was read", path);
    done += static_cast<size_t>(got);
  }
  return contents;
}

Status WriteFileDurably(const std::string& path, std::string_view contents) {
  const std::string part = path + ".part";
  {
    const FileDescriptor fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (fd.get() < 0) return FromErrno("cannot create", part);
    while (!contents.empty()) {
      const ssize_t put = ::write(fd.get(), contents.data(), contents.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return FromErrno("cannot write", part);
      contents.remove_prefix(static_cast<size_t>(put));
    }
    if (::fsync(fd.get()) != 0) return FromErrno("cannot sync", part);
  }
  if (::rename(part.c_str(), path.c_str()) != 0) return FromErrno("cannot rename", part);
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string dir = parent.empty() ? "." : parent;
  const FileDescriptor dir_fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir_fd.get() < 0 || ::fsync(dir_fd.get()) != 0) return FromErrno("cannot sync", dir);
  return OkStatus();
}

}  // namespace kvasir::base

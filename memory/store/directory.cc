#include "memory/store/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include "engine/base/file.h"
#include "memory/store/store.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormatPrefix = "kvasir-store ";
constexpr std::string_view kKeysPrefix = "\nkeys ";
constexpr size_t kFormatBytesMax = 4096;
constexpr size_t kHolderBytesMax = 256;

struct Format {
  int version = 0;
  std::string keys;
};

base::Status MakeDirectory(const std::string& dir) {
  if (::mkdir(dir.c_str(), 0700) == 0) {
    const std::string parent = fs::path(dir).parent_path().string();
    const int fd =
        ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::fsync(fd) == 0;
    if (fd >= 0) ::close(fd);
    return synced ? base::OkStatus() : base::Unavailable("cannot sync the directory of {}", dir);
  }
  if (errno == EEXIST && fs::is_directory(dir)) return base::OkStatus();
  return base::Unavailable("cannot make data directory {}: {}", dir, std::strerror(errno));
}

// The format of the store in `dir`, or nothing when there is none and one may be made.
base::StatusOr<std::optional<Format>> ReadFormat(const std::string& dir) {
  const std::string path = dir + "/FORMAT";
  const auto text = base::ReadFile(path, kFormatBytesMax);
  if (absl::IsNotFound(text.status())) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(dir, error)) {
      const std::string name = entry.path().filename().string();
      const bool ours = name == "LOCK" || name == "keys" || name == "meta" || name == "states" ||
                        name == "FORMAT.part";
      if (!ours) {
        return base::FailedPrecondition("{} holds {} and no FORMAT: it is no Kvasir data directory",
                                        dir, name);
      }
    }
    return std::optional<Format>();
  }
  KVASIR_RETURN_IF_ERROR(text.status());
  Format format;
  const size_t keys = text->find(kKeysPrefix);
  const char* begin = text->data() + kFormatPrefix.size();
  const char* end = text->data() + text->find('\n');
  const bool prefixed = text->starts_with(kFormatPrefix) && text->find('\n') != std::string::npos;
  const auto number = prefixed ? std::from_chars(begin, end, format.version)
                               : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (number.ec != std::errc() || format.version < 1) {
    return base::DataLoss("{} is damaged: {} bytes without a format number", path, text->size());
  }
  if (format.version > kStoreFormat) {
    return base::FailedPrecondition("{} has store format {}, this program reads up to {}", dir,
                                    format.version, kStoreFormat);
  }
  if (keys == std::string::npos || !text->ends_with('\n')) {
    return base::DataLoss("{} is damaged: no key fingerprint", path);
  }
  format.keys = text->substr(keys + kKeysPrefix.size());
  format.keys.pop_back();
  return std::optional<Format>(format);
}

std::string ReadHolder(int fd) {
  std::string holder(kHolderBytesMax, '\0');
  const ssize_t got = ::pread(fd, holder.data(), holder.size(), 0);
  holder.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return holder.empty() ? "another process" : holder;
}

std::string DescribeSelf(const base::Clock& clock) {
  char program[32] = {};
  const int fd = ::open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t got = ::read(fd, program, sizeof(program) - 1);
    if (got > 0) program[got - 1] = '\0';  // the line's end
    ::close(fd);
  }
  return fmt::format("process {} ({}), since Unix time {}", ::getpid(), program,
                     clock.WallMicros() / 1000000);
}

}  // namespace

base::Status DataDirectory::Lock(const base::Clock& clock) {
  const std::string path = dir_ + "/LOCK";
  lock_fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return base::Unavailable("cannot open {}: {}", path, std::strerror(errno));
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return base::Unavailable("cannot lock {}: {}", path, std::strerror(errno));
    }
    return base::Unavailable("data directory {} is in use by {}", dir_, ReadHolder(lock_fd_));
  }
  const std::string self = DescribeSelf(clock);
  if (::ftruncate(lock_fd_, 0) != 0 ||
      ::pwrite(lock_fd_, self.data(), self.size(), 0) != static_cast<ssize_t>(self.size())) {
    return base::Unavailable("cannot write {}: {}", path, std::strerror(errno));
  }
  return base::OkStatus();
}

base::StatusOr<std::unique_ptr<DataDirectory>> DataDirectory::Open(const std::string& dir,
                                                                   const base::Clock& clock,
                                                                   base::Entropy& entropy) {
  KVASIR_RETURN_IF_ERROR(MakeDirectory(dir));
  // Before the lock: a directory that is refused stays untouched. After it: nobody changes it now.
  KVASIR_RETURN_IF_ERROR(ReadFormat(dir).status());
  std::unique_ptr<DataDirectory> directory(new DataDirectory(dir));
  KVASIR_RETURN_IF_ERROR(directory->Lock(clock));
  KVASIR_ASSIGN_OR_RETURN(const std::optional<Format> format, ReadFormat(dir));
  directory->fresh_ = !format.has_value();
  // Records that exist already can only be read with the keys they were written with.
  const bool create_keys = directory->fresh_ && !fs::exists(directory->meta_path());
  if (create_keys) KVASIR_RETURN_IF_ERROR(MakeDirectory(dir + "/keys"));
  auto ring = OpenFileKeyRing({.dir = dir + "/keys", .entropy = &entropy, .create = create_keys});
  if (absl::IsNotFound(ring.status())) {
    return base::FailedPrecondition("the keys of {} are missing: {}", dir,
                                    base::ToStd(ring.status().message()));
  }
  KVASIR_RETURN_IF_ERROR(ring.status());
  directory->key_ring_ = std::move(ring).value();
  const std::string fingerprint = directory->key_ring_->Fingerprint();
  if (format.has_value() && format->keys != fingerprint) {
    return base::FailedPrecondition("{}/keys has the keys {}, the store was made with {}", dir,
                                    fingerprint, format->keys);
  }
  return directory;
}

base::Status DataDirectory::MarkComplete() {
  if (!fresh_) return base::OkStatus();
  KVASIR_RETURN_IF_ERROR(base::WriteFileDurably(
      dir_ + "/FORMAT", fmt::format("{}{}{}{}\n", kFormatPrefix, kStoreFormat, kKeysPrefix,
                                    key_ring_->Fingerprint())));
  fresh_ = false;
  return base::OkStatus();
}

DataDirectory::~DataDirectory() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

}  // namespace kvasir::store

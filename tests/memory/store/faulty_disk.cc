#include "tests/memory/store/faulty_disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kvasir::store {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace fs = std::filesystem;

// RocksDB writes "DIR//FILE" here and there.
std::string Plain(const std::string& path) { return fs::path(path).lexically_normal().string(); }

class File final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  File(std::unique_ptr<rocksdb::FSWritableFile> target, std::string path, FaultyDisk& disk)
      : FSWritableFileOwnerWrapper(std::move(target)), path_(std::move(path)), disk_(disk) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = disk_.Count("append to " + path_);
    if (!status.ok()) return status;
    disk_.Appended(path_, data.size());
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    const IOStatus status = disk_.Count("sync " + path_);
    if (status.ok()) disk_.Synced(path_);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();  // a hint: promises nothing
  }

 private:
  std::string path_;
  FaultyDisk& disk_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> target, std::string path, FaultyDisk& disk)
      : FSDirectoryWrapper(std::move(target)), path_(std::move(path)), disk_(disk) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    const IOStatus status = disk_.Count("sync directory " + path_);
    if (status.ok()) disk_.DirectorySynced(path_);
    return status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  std::string path_;
  FaultyDisk& disk_;
};

class ImpatientEnv final : public rocksdb::EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  const char* Name() const override { return "ImpatientEnv"; }
  void SleepForMicroseconds(int micros) override {
    EnvWrapper::SleepForMicroseconds(std::min(micros, 100));
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<FaultyDisk>& disk) {
  return std::make_unique<ImpatientEnv>(rocksdb::NewCompositeEnv(disk));
}

FaultyDisk::FaultyDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

void FaultyDisk::FailAt(uint64_t call, Fault fault) {
  const std::lock_guard lock(mutex_);
  fail_at_ = calls_ + call;
  fault_ = fault;
}

bool FaultyDisk::fired() const {
  const std::lock_guard lock(mutex_);
  return fired_;
}

IOStatus FaultyDisk::Count(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++calls_;
  const bool fails = fault_ == Fault::kPowerOff ? calls_ >= fail_at_ : calls_ == fail_at_;
  if (!fails) return IOStatus::OK();
  fired_ = true;
  return IOStatus::IOError("injected: " + what);
}

void FaultyDisk::Appended(const std::string& path, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  files_[path].written += bytes;
}

void FaultyDisk::Synced(const std::string& path) {
  const std::lock_guard lock(mutex_);
  FileState& file = files_[path];
  file.synced = file.written;
}

void FaultyDisk::DirectorySynced(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(new_names_,
                [&](const NewName& name) { return fs::path(name.path).parent_path() == path; });
}

std::optional<std::string> FaultyDisk::Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
}

IOStatus FaultyDisk::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSWritableFile>* file,
                                     IODebugContext* debug) {
  const std::string plain = Plain(path);
  IOStatus status = Count("create " + plain);
  if (!status.ok()) return status;
  const std::optional<std::string> old = Content(plain);
  std::unique_ptr<rocksdb::FSWritableFile> target;
  status = FS::NewWritableFile(path, options, &target, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  files_[plain] = FileState();
  new_names_.push_back({plain, old});
  *file = std::make_unique<File>(std::move(target), plain, *this);
  return status;
}

IOStatus FaultyDisk::NewDirectory(const std::string& path, const IOOptions& options,
                                  std::unique_ptr<rocksdb::FSDirectory>* directory,
                                  IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> target;
  const IOStatus status = FS::NewDirectory(path, options, &target, debug);
  std::string plain = Plain(path);
  if (plain.ends_with('/')) plain.pop_back();
  if (status.ok()) *directory = std::make_unique<Directory>(std::move(target), plain, *this);
  return status;
}

IOStatus FaultyDisk::RenameFile(const std::string& from, const std::string& to,
                                const IOOptions& options, IODebugContext* debug) {
  IOStatus status = Count("rename " + from);
  if (!status.ok()) return status;
  const std::optional<std::string> old = Content(to);
  status = FS::RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  files_[Plain(to)] = files_[Plain(from)];
  files_.erase(Plain(from));
  std::erase_if(new_names_, [&](const NewName& name) { return name.path == Plain(from); });
  new_names_.push_back({Plain(to), old});
  return status;
}

IOStatus FaultyDisk::DeleteFile(const std::string& path, const IOOptions& options,
                                IODebugContext* debug) {
  IOStatus status = Count("delete " + path);
  if (!status.ok()) return status;
  status = FS::DeleteFile(path, options, debug);
  const std::lock_guard lock(mutex_);
  files_.erase(Plain(path));
  std::erase_if(new_names_, [&](const NewName& name) { return name.path == Plain(path); });
  return status;
}

void FaultyDisk::LoseUnsynced() {
  const std::lock_guard lock(mutex_);
  for (const auto& [path, file] : files_) {
    if (fs::exists(path) && fs::file_size(path) > file.synced) fs::resize_file(path, file.synced);
  }
  for (auto name = new_names_.rbegin(); name != new_names_.rend(); ++name) {
    fs::remove(name->path);
    if (!name->old_content.has_value()) continue;
    std::ofstream(name->path, std::ios::binary) << *name->old_content;
  }
  files_.clear();
  new_names_.clear();
}

}  // namespace kvasir::store

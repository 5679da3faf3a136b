// FaultyDisk: a RocksDB file system over the machine's that counts the calls which change the disk
// and can fail one of them, or lose power at one: then nothing reaches the disk any more, and
// LoseUnsynced takes back what was never synced (bytes of files, new names, renames). Syncs are
// noted, not passed on: a test needs no real disk to be fast.
// Threads: all methods may be called concurrently, LoseUnsynced after every file is closed.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kvasir::store {

class FaultyDisk : public rocksdb::FileSystemWrapper {
 public:
  FaultyDisk();
  const char* Name() const override { return "FaultyDisk"; }

  // The call number `call` (from 1) fails; with kPowerOff also every later one.
  enum class Fault { kOnce, kPowerOff };
  void FailAt(uint64_t call, Fault fault);
  // Whether that call was reached.
  bool fired() const;
  void LoseUnsynced();

  using FS = rocksdb::FileSystemWrapper;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  // Called by the files and directories it hands out.
  rocksdb::IOStatus Count(const std::string& what);
  void Appended(const std::string& path, uint64_t bytes);
  void Synced(const std::string& path);
  void DirectorySynced(const std::string& path);

 private:
  struct FileState {
    uint64_t written = 0;
    uint64_t synced = 0;
  };
  // A name that came to be and whose directory was not synced since.
  struct NewName {
    std::string path;
    std::optional<std::string> old_content;  // what the name stood for before
  };
  static std::optional<std::string> Content(const std::string& path);

  mutable std::mutex mutex_;
  uint64_t calls_ = 0;
  uint64_t fail_at_ = UINT64_MAX;
  Fault fault_ = Fault::kOnce;
  bool fired_ = false;
  std::map<std::string, FileState> files_;
  std::vector<NewName> new_names_;
};

// An environment over `disk` in which RocksDB does not wait a second after a failed flush.
std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<FaultyDisk>& disk);

}  // namespace kvasir::store

// Helpers of the store's tests: temporary directories in the build tree, records, segments.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/rng.h"
#include "memory/store/store.h"

namespace kvasir::store {

// A directory beside the test binary, removed at the end.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Options with small bounds, over clock and entropy of the process.
Options TestOptions(const std::string& dir);
// Opens or fails the test binary.
std::unique_ptr<Store> OpenOrDie(const Options& options);

UserKey User(int number);
RecordKey Key(int user, Kind kind, uint8_t id, uint64_t sequence);
// `size` bytes that follow from `seed`.
std::string Bytes(uint64_t seed, size_t size);
// A segment whose content follows from `seed`; it decodes under the key of `store`'s user.
std::shared_ptr<const kv::EncodedSegment> Segment(const Store& store, int user, uint64_t seed);
// Whether `user`'s segment `id` is stored, complete and decodes to the content of `seed`.
base::Status CheckSegment(const Store& store, int user, uint64_t seed);
kv::SegmentId SegmentIdOf(uint64_t seed);

// All records of one user, of all kinds but kSegment.
std::map<RecordKey, std::string> AllRecords(const Store& store, const UserKey& user);
// Regular files under `dir` that contain `needle`, with their sizes in the name.
std::vector<std::string> FilesWith(const std::string& dir, const std::string& needle);
int OpenFileCount();

}  // namespace kvasir::store

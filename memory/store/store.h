// Store: the durable half of the memory tier. Two RocksDB instances in one data directory: `meta`
// (small records; every batch synced before it is acknowledged) and `states` (immutable segment
// chunks, no write-ahead log: a chunk counts only through its segment's row in `meta`).
//
// Order of a commit with segments: (1) chunks are written to `states`; (2) `states` is flushed, so
// they are durable; (3) one synced batch to `meta` holds the segments' rows and all records.
// Dropping goes the other way: `meta` first, chunks after. A crash between two steps leaves chunks
// without a row (orphans: never read, removed by SweepOrphans), never a row without chunks.
//
// Every value is AES-256-GCM with the record key as additional data; what stands in clear are the
// keys of keys.h, sizes and times.
//
// Threads: all methods may be called concurrently. All block on disk: never on a scheduler thread.
// Concurrent commits share their flush and their sync.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "engine/kv/codec.h"
#include "memory/store/batch.h"
#include "memory/store/key_ring.h"
#include "memory/store/keys.h"

namespace kvasir::store {

inline constexpr int kStoreFormat = 1;

struct Options {
  std::string dir;                     // made with mode 0700 when absent
  const base::Clock* clock = nullptr;  // borrowed
  base::Entropy* entropy = nullptr;    // borrowed; concurrent calls
  size_t value_bytes_max = size_t{4} << 20;
  size_t batch_bytes_max = size_t{32} << 20;  // keys and values of one batch, without segments
  size_t batch_changes_max = 65536;
  size_t segment_bytes_max = size_t{512} << 20;  // header and chunks of one segment
  size_t scan_records_max = 10000;               // of one page, whatever the caller asks
  size_t scan_bytes_max = size_t{32} << 20;      // of one page; at least one record is returned
  size_t cache_bytes = size_t{64} << 20;         // block cache of both instances together
  size_t meta_buffer_bytes = size_t{8} << 20;    // write buffers; each instance holds up to three
  size_t states_buffer_bytes = size_t{32} << 20;
  int open_files_max = 256;                // table files kept open per instance
  size_t log_bytes_max = size_t{1} << 20;  // RocksDB's own text log, four of them per instance
};

struct Record {
  RecordKey key;
  std::string value;
};

// Records in key order (descending when asked).
struct ScanOptions {
  UserKey user;
  Kind kind = Kind::kUser;
  std::optional<RecordId> id;      // only this id's records
  std::optional<RecordKey> after;  // strictly past this key, in the direction of the scan
  size_t records_max = 1000;
  enum class Order { kAscending, kDescending } order = Order::kAscending;
};

struct Page {
  std::vector<Record> records;
  bool more = false;  // records past the last one exist
};

// A stored segment, as its row in `meta` describes it.
struct SegmentRow {
  UserKey user;
  kv::SegmentId id{};
  base::Digest digest;  // EncodedSegment::digest
  int32_t chunk_count = 0;
  uint64_t bytes = 0;  // header and chunks
  bool operator==(const SegmentRow&) const = default;
};

struct SegmentPage {
  std::vector<SegmentRow> segments;
  bool more = false;
};

struct Stats {
  uint64_t meta_file_bytes = 0;    // table files
  uint64_t states_file_bytes = 0;  // table files
  uint64_t meta_records_estimate = 0;
  uint64_t memory_bytes = 0;    // write buffers, cache, index blocks
  uint64_t commits = 0;         // since Open
  uint64_t states_flushes = 0;  // since Open; fewer than commits with segments when shared
  // Grows with every change ever made, also over reopening; what a high-water mark compares.
  uint64_t commit_sequence = 0;
};

struct SweepResult {
  uint64_t segments_seen = 0;
  uint64_t orphans_removed = 0;
  uint64_t orphan_chunks_removed = 0;
};

class Store {
 public:
  // Opens the store in options.dir, made when the directory is absent or empty.
  // Errors: FailedPrecondition (format newer than kStoreFormat, or the directory holds something
  // else: nothing was touched; or the keys are not this store's), Unavailable (in use: says by
  // which process; disk), PermissionDenied, DataLoss (keys or a RocksDB file damaged: says which).
  static base::StatusOr<std::unique_ptr<Store>> Open(const Options& options);
  virtual ~Store() = default;

  virtual const KeyRing& key_ring() const = 0;

  // Applies `batch` atomically; durable once OK is returned. After an error it is whole or absent
  // (which, shows after reopening), and its segments are not visible before that.
  // Errors: InvalidArgument (a value, the batch or a segment over its bound: says both sizes; kind
  // kSegment in a plain record; a segment added and dropped), AlreadyExists (a segment id in use),
  // NotFound (a user's key was destroyed), Unavailable (disk failed; later commits fail too until
  // it is well again; after a failed sync of the log, until the store is reopened).
  virtual base::Status Commit(const Batch& batch) = 0;

  // Errors: NotFound, DataLoss (does not open under the user's key: damaged), FailedPrecondition
  // (written by a newer program), Unavailable.
  virtual base::StatusOr<std::string> Get(const RecordKey& key) const = 0;
  // One page; each page is a consistent view, two pages are not the same one.
  // Errors: InvalidArgument (`after` outside the range), DataLoss (names the key), Unavailable.
  virtual base::StatusOr<Page> Scan(const ScanOptions& options) const = 0;
  // The records of `kind` of all users, by user then id, past `after`: recovery and jobs.
  // Complexity: one seek per user. Errors: as Scan.
  virtual base::StatusOr<Page> ScanAllUsers(Kind kind, const std::optional<RecordKey>& after,
                                            size_t records_max) const = 0;
  // How many records of `kind` there are, of `user` or of all users. Reads keys only. Complexity:
  // one seek per user, one step per record counted. Errors: DataLoss (a malformed key), Unavailable.
  virtual base::StatusOr<int64_t> CountRecords(Kind kind,
                                               const std::optional<UserKey>& user) const = 0;

  // Errors: NotFound, DataLoss, Unavailable.
  virtual base::StatusOr<SegmentRow> GetSegment(const UserKey& user,
                                                const kv::SegmentId& id) const = 0;
  // A page of a user's segments past `after`, by id. Errors: DataLoss, Unavailable.
  virtual base::StatusOr<SegmentPage> ListSegments(const UserKey& user,
                                                   const std::optional<kv::SegmentId>& after,
                                                   size_t segments_max) const = 0;
  // The sealed header or chunk as stored; kv::Decoder checks it against SegmentRow::digest.
  // Errors: NotFound (no such segment), InvalidArgument (index outside the segment), DataLoss
  // reason STATE_CORRUPT (the row stands and the bytes are gone or RocksDB's checksum fails),
  // Unavailable.
  virtual base::StatusOr<std::string> ReadHeader(const UserKey& user,
                                                 const kv::SegmentId& id) const = 0;
  virtual base::StatusOr<std::string> ReadChunk(const UserKey& user, const kv::SegmentId& id,
                                                int chunk) const = 0;
  // Row, header and chunks. Errors: as ReadChunk.
  virtual base::StatusOr<kv::EncodedSegment> ReadSegment(const UserKey& user,
                                                         const kv::SegmentId& id) const = 0;

  // Removes every record and segment of `user`: gone for every reader, durably, after the first of
  // its steps. When OK is returned, and readers that began before have ended, no table file or log
  // holds a record of the user any more (the user's files were rewritten); MANIFEST may still hold
  // user keys, which are hashes. Idempotent: call again after an error. Commits for the same user
  // meanwhile are the caller's to exclude. Errors: Unavailable.
  virtual base::Status DropUser(const UserKey& user) = 0;

  // Removes chunks that no row names; those of a commit that failed stay until the store is
  // reopened, when it shows whether they have a row. Cost: one seek per segment. Errors: DataLoss,
  // Unavailable.
  virtual base::StatusOr<SweepResult> SweepOrphans() = 0;
  // Rows of `user` whose header or a chunk is missing. Reads keys only. Errors: DataLoss,
  // Unavailable.
  virtual base::StatusOr<std::vector<SegmentRow>> FindBrokenSegments(const UserKey& user) const = 0;

  virtual Stats GetStats() const = 0;
};

}  // namespace kvasir::store

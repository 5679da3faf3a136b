// Keys of the store: what may stand in clear in RocksDB's files (write-ahead log, SST bounds,
// MANIFEST).
//
// A record key is UserKey [16] ‖ kind [1] ‖ record id [16] ‖ sequence [8, big-endian]. No name,
// title, tag or id chosen by a client is ever part of one: users become keyed hashes, objects get
// random ids, and a name leads to its id through a row whose id is a keyed hash.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/rng.h"
#include "engine/kv/codec.h"

namespace kvasir::store {

// HMAC-SHA256(index key, len ‖ tenant ‖ len ‖ user), first 16 bytes. Says nothing without the key.
struct UserKey {
  std::array<uint8_t, 16> bytes{};
  auto operator<=>(const UserKey&) const = default;
};

// The user of the server's own records (jobs that span users); no client maps to it.
inline constexpr UserKey kSystemUser{};

// 128 random bits, or a keyed hash of a name.
struct RecordId {
  std::array<uint8_t, 16> bytes{};
  // 32 lower-case hexadecimal digits.
  std::string Hex() const { return base::ToHex(bytes); }
  auto operator<=>(const RecordId&) const = default;
};

// What a record is. The numbers are part of the format (docs/formats.md): never reuse one. Values
// are encoded by memory/service; kSegment rows belong to the store and are written through
// Batch::AddSegment and DropSegment only.
enum class Kind : uint8_t {
  kUser = 1,         // one per user: names, settings, epoch
  kSession = 2,      // id = session; sequence 0
  kTurn = 3,         // id = session; sequence = number of the turn
  kMemory = 4,       // id = memory; sequence 0
  kRevision = 5,     // id = memory; sequence = number of the revision
  kPostings = 6,     // id = memory; sequence = part; rows of the lexical index
  kKeyRows = 7,      // id = memory; sequence = part; int8 rows of the key index
  kJob = 8,          // id = job; sequence 0
  kTombstone = 9,    // id = what was deleted; sequence 0
  kName = 10,        // id = NameId of a client's name; value = the record id it stands for
  kSegment = 11,     // id = segment; sequence 0
  kCheckpoint = 12,  // id = session; sequence = part; names the segments of a session's checkpoint
  kGroup = 13,       // id = consolidation group; sequence 0
  kOperation = 14,   // id = long-running operation; sequence 0
};
inline constexpr uint8_t kKindMax = 14;

struct RecordKey {
  UserKey user;
  Kind kind = Kind::kUser;
  RecordId id;
  uint64_t sequence = 0;
  auto operator<=>(const RecordKey&) const = default;
};

inline constexpr size_t kRecordKeyBytes = 41;
// The stored form; its byte order is RecordKey's order.
std::string EncodeKey(const RecordKey& key);
// The key of stored bytes, or nothing when they are no key of this format.
std::optional<RecordKey> DecodeKey(std::string_view bytes);

// The secret under which users and names are hashed.
using IndexKey = std::array<uint8_t, 32>;

UserKey MakeUserKey(const IndexKey& key, std::string_view tenant, std::string_view user);
// The id of the kName row of `name` among `user`'s names of `kind`.
RecordId MakeNameId(const IndexKey& key, const UserKey& user, Kind kind, std::string_view name);
// A new random id.
RecordId NewRecordId(base::Entropy& entropy);

}  // namespace kvasir::store

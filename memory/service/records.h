// Records: what the memory tier keeps durably about a user, a session, a turn and a memory. Plain
// values; stored as CBOR maps (records_codec.h), readable by every later version.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/kv/codec.h"
#include "memory/store/keys.h"

namespace kvasir::service {

// Who is meant: the tenant comes from the credential, the user from the resource name.
struct UserRef {
  std::string tenant = "default";
  std::string user;
  auto operator<=>(const UserRef&) const = default;
};

// With whom a user's work in the engine shares.
inline std::string FairnessKey(const UserRef& user) { return user.tenant + "/" + user.user; }

enum class MemoryMode : uint8_t { kOff, kRead, kReadWrite, kIncognito };

struct UserRecord {
  UserRef ref;
  int64_t create_us = 0;  // wall time, as every *_us here
  uint64_t epoch = 0;     // raised by every deletion
};

// A stored exact segment: part of a checkpoint or of a memory's state. Parts of one state follow
// each other without a gap.
struct StatePart {
  kv::SegmentId id{};
  base::Digest digest;         // EncodedSegment::digest
  int64_t first_position = 0;  // of its first token
  int32_t tokens = 0;
  int64_t bytes = 0;  // stored
};

// What a build of a memory waits for in the queue, or a sweep.
struct JobRecord {
  enum class Type : uint8_t { kBuildMemory, kSweep };
  store::RecordId id;  // kBuildMemory: the session; kSweep: kSweepJob
  Type type = Type::kBuildMemory;
  UserRef user;
  int64_t due_us = 0;  // not before
  int64_t attempts = 0;
  int64_t create_us = 0;
};

// A memory as one session has it mounted.
struct MountEntry {
  store::RecordId memory;
  std::vector<StatePart> parts;  // as they were when mounted
  int64_t begin = 0;             // logical position of its first token
  int64_t tokens = 0;            // logical length
  int64_t visible_from = 0;      // first logical position whose token attends to it
  int64_t turn = 0;              // the turn that added it
  bool deleted = false;          // its memory was deleted: mounted no more
};

struct SessionRecord {
  enum class State : uint8_t { kOpen, kClosed };
  store::RecordId id;
  std::string name;  // last part of the resource name
  std::string display_name;
  std::string system_prompt;
  MemoryMode mode = MemoryMode::kReadWrite;
  State state = State::kOpen;
  std::string date;          // "2026-12-01", of its date line; fixed at the first turn
  int64_t offset = -1;       // logical position of its first token; −1 before the first turn
  int64_t next_turn = 1;     // number of the next turn
  int64_t running_turn = 0;  // the turn that is kRunning; 0: none
  std::vector<MountEntry> mounts;
  std::optional<store::RecordId> memory;  // made from this session
  std::string model_id_hex;  // whose token ids its turns hold; empty before the first turn
  bool tainted = false;    // its state may not become a memory: it had a mount, own prompt, another
                           // offset, a deletion, or a turn that leaves no memory
  int64_t void_turn = 0;   // a deletion voided the state of all turns up to this one
  bool incognito = false;  // it, or a turn of it, is kIncognito: no state of it is stored
  int64_t create_us = 0, update_us = 0, close_us = 0;
};

struct TurnUsage {
  int64_t computed_tokens = 0, session_cached_tokens = 0, memory_tokens = 0, memory_slots = 0,
          output_tokens = 0;
  double queue_ms = 0, restore_ms = 0, ttft_ms = 0, decode_ms = 0;
  int64_t prompt_tokens() const { return computed_tokens + session_cached_tokens + memory_tokens; }
};

struct TurnRecord {
  // kRunning → kDone (also when cancelled or cut off) or kFailed (the server ended before its
  // reply); kDeleted: content removed.
  enum class State : uint8_t { kRunning, kDone, kFailed, kDeleted };
  store::RecordId session;
  int64_t number = 0;
  State state = State::kRunning;
  MemoryMode mode = MemoryMode::kReadWrite;
  std::string user_text;
  std::string reply_text;
  std::vector<int32_t> prompt_ids;     // what this turn added before the reply, in order (closing
                                       // tokens of the reply before not counted)
  std::vector<int32_t> reply_ids;      // sampled tokens, the last one included
  std::vector<double> reply_logprobs;  // when asked for
  std::string finish_reason;           // "STOP", "LENGTH", …; empty while running
  std::string request_id;              // empty: none
  base::Digest request_digest;         // over the request's fields
  std::string sampling_json;           // parameters and seed
  std::string route_json;              // the route as it was decided: memory ids, no titles or text
  TurnUsage usage;
  int64_t create_us = 0, finish_us = 0;
};

struct MemoryRecord {
  enum class State : uint8_t { kExact, kCompacted, kStale, kRebuilding, kCorrupt, kDeleted };
  store::RecordId id;
  std::string name;         // last part of the resource name
  store::RecordId session;  // it was made from
  State state = State::kExact;
  std::string title;                  // first words of its first user message
  std::vector<int64_t> source_turns;  // turn numbers of the session
  std::vector<StatePart> parts;       // empty while kRebuilding
  std::string model_id_hex, build_id;
  int64_t logical_tokens = 0;
  int64_t use_count = 0;
  int64_t create_us = 0, update_us = 0, last_use_us = 0, delete_us = 0;
};

// What was done to erase a user. Outlives the user and holds nothing personal: `user` is a keyed
// hash, and cleared when done.
struct ErasureRecord {
  enum class State : uint8_t { kRunning, kDone, kFailed };
  store::RecordId id;
  std::string tenant;
  store::UserKey user;
  State state = State::kRunning;
  int64_t request_us = 0, done_us = 0;
  int64_t sessions = 0, turns = 0, memories = 0, segments = 0;  // removed
  uint64_t residual_records = 0;  // found by the scan afterwards; 0 when done
  std::string error;
};

}  // namespace kvasir::service

// Batch: changes that become durable together, or not at all. Threads: one at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/kv/codec.h"
#include "memory/store/keys.h"

namespace kvasir::store {

class Batch {
 public:
  // Sets the record `key` to `value`. A later change of the same key in the batch wins.
  Batch& Put(const RecordKey& key, std::string value) {
    changes_.push_back(PutRecord{key, std::move(value)});
    return *this;
  }
  // Removes the record; absent is fine.
  Batch& Delete(const RecordKey& key) {
    changes_.push_back(DeleteRecord{key});
    return *this;
  }
  // Stores a sealed segment. Its id must be new: ids are random, and a segment is written once.
  Batch& AddSegment(const UserKey& user, std::shared_ptr<const kv::EncodedSegment> segment) {
    changes_.push_back(AddedSegment{user, std::move(segment)});
    return *this;
  }
  // Removes a segment; absent is fine.
  Batch& DropSegment(const UserKey& user, const kv::SegmentId& id) {
    changes_.push_back(DroppedSegment{user, id});
    return *this;
  }

  bool empty() const { return changes_.empty(); }
  size_t size() const { return changes_.size(); }

  struct PutRecord {
    RecordKey key;
    std::string value;
  };
  struct DeleteRecord {
    RecordKey key;
  };
  struct AddedSegment {
    UserKey user;
    std::shared_ptr<const kv::EncodedSegment> segment;
  };
  struct DroppedSegment {
    UserKey user;
    kv::SegmentId id;
  };
  using Change = std::variant<PutRecord, DeleteRecord, AddedSegment, DroppedSegment>;
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::vector<Change> changes_;
};

}  // namespace kvasir::store

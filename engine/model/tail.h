// Tail: the part of a sequence that it writes itself: consecutive logical positions
// [first_position, end), frame 0, in pages of a PagePool. Rows of a step are appended by
// Model::Forward.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernels/kv_layout.h"
#include "engine/kv/segment.h"
#include "engine/model/page_pool.h"

namespace kvasir::model {

class Model;

class Tail {
 public:
  // An empty tail whose first token will stand at `first_position`. `pool` must outlive it.
  Tail(PagePool& pool, int64_t first_position);
  ~Tail();
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  int64_t first_position() const { return first_position_; }
  int64_t end() const { return first_position_ + static_cast<int64_t>(tokens_.size()); }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  // Ids of the tokens in the tail, in order.
  std::span<const int32_t> tokens() const { return tokens_; }

  // Makes room for positions up to `end`. After an error the tail is as before.
  // Errors: ResourceExhausted (the pool is full).
  base::Status Reserve(int64_t end);
  // Pages that Reserve(end) would acquire.
  int64_t PagesNeeded(int64_t end) const;
  int64_t pages() const { return static_cast<int64_t>(pages_.size()); }

  // Forgets the tokens from `end` on (rollback of drafts, cancelled replies). REQUIRES:
  // first_position ≤ end ≤ end().
  void Truncate(int64_t end);
  // Records that the rows of `tokens`, written by a forward pass, are part of the tail. REQUIRES:
  // reserved.
  void Advance(std::span<const int32_t> tokens);

  // Appends the tokens of an exact segment whose local positions continue this tail
  // (info().first_position == end()): its raw keys are rotated again by the same code, so the pages
  // are byte-equal to those it was cut from. Errors: InvalidArgument (geometry, element type or
  // position differ), ResourceExhausted.
  base::Status Append(const Model& model, const kv::KvSegment& segment);

  // Tokens [begin, end) (logical positions) as an exact segment. `info` gives identity and turns;
  // its tokens, first_position and element_type are filled in. REQUIRES: inside the tail.
  std::shared_ptr<const kv::KvSegment> Cut(const Model& model, int64_t begin, int64_t end,
                                           kv::SegmentInfo info) const;

  // What attention reads of [first_position, end). Valid until the next call that is not const.
  kernels::Span span(int64_t end) const;
  std::span<std::byte* const> page_pointers() const { return pages_; }
  int64_t page_first() const { return first_position_ / kernels::kPageSlots; }

 private:
  void ReleasePagesFrom(size_t first);

  PagePool& pool_;
  const int64_t first_position_;
  std::vector<int32_t> tokens_;
  std::vector<std::byte*> pages_;
};

}  // namespace kvasir::model

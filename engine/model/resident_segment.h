// ResidentSegment: an immutable segment decoded to the layout attention reads: keys rotated once at
// local positions. Mount: such a segment placed at a logical position of one sequence.
//
// Threads: immutable once made; shared by shared_ptr<const ResidentSegment>.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/status.h"
#include "engine/kernels/kv_layout.h"
#include "engine/kv/segment.h"
#include "engine/model/page_pool.h"

namespace kvasir::model {

class Model;

class ResidentSegment {
 public:
  // Decodes `segment` into pages of `pool`, which must outlive the result.
  // Errors: InvalidArgument (geometry or element type differs from the model's; not exact;
  // positions past the RoPE
  //         table), ResourceExhausted (the pool is full).
  static base::StatusOr<std::shared_ptr<const ResidentSegment>> Make(const Model& model,
                                                                     PagePool& pool,
                                                                     const kv::KvSegment& segment);
  ~ResidentSegment();

  const base::Digest& digest() const { return digest_; }  // content digest of the segment
  int64_t first_local() const { return first_local_; }
  int64_t logical_tokens() const { return logical_tokens_; }
  int64_t slots() const { return logical_tokens_; }  // per head
  size_t bytes() const;
  std::span<const std::byte* const> pages() const { return {pages_.data(), pages_.size()}; }
  int64_t page_first() const { return first_local_ / kernels::kPageSlots; }

 private:
  explicit ResidentSegment(PagePool& pool) : pool_(pool) {}
  PagePool& pool_;
  base::Digest digest_;
  int64_t first_local_ = 0;
  int64_t logical_tokens_ = 0;
  std::vector<std::byte*> pages_;
};

// A segment at logical positions [begin, begin + logical_tokens). Its frame is begin −
// first_local().
struct Mount {
  std::shared_ptr<const ResidentSegment> segment;
  int64_t begin = 0;

  int64_t frame() const { return begin - segment->first_local(); }
  int64_t end() const { return begin + segment->logical_tokens(); }
  kernels::Span span() const;
};

}  // namespace kvasir::model

#include "engine/model/resident_segment.h"

#include "engine/base/check.h"
#include "engine/model/model.h"
#include "engine/model/segment_fit.h"

namespace kvasir::model {

base::StatusOr<std::shared_ptr<const ResidentSegment>> ResidentSegment::Make(
    const Model& model, PagePool& pool, const kv::KvSegment& segment) {
  KVASIR_RETURN_IF_ERROR(CheckFits(model, segment));
  std::shared_ptr<ResidentSegment> resident(new ResidentSegment(pool));
  resident->digest_ = segment.ContentDigest();
  resident->first_local_ = segment.info().first_position;
  resident->logical_tokens_ = segment.logical_tokens();
  const int64_t end = resident->first_local_ + resident->logical_tokens_;
  const int64_t page_end = (end + kernels::kPageSlots - 1) / kernels::kPageSlots;
  for (int64_t page = resident->page_first(); page < page_end; ++page) {
    KVASIR_ASSIGN_OR_RETURN(std::byte * memory, pool.Acquire(PageKind::kResident));
    resident->pages_.push_back(memory);
  }
  MountHeads(model, segment, resident->pages_, resident->page_first(), RawKeys::kDrop);
  return std::shared_ptr<const ResidentSegment>(std::move(resident));
}

ResidentSegment::~ResidentSegment() {
  for (std::byte* page : pages_) pool_.Release(PageKind::kResident, page);
}

size_t ResidentSegment::bytes() const {
  return pages_.size() * pool_.page_bytes(PageKind::kResident);
}

kernels::Span Mount::span() const {
  kernels::Span span;
  span.frame = frame();
  span.begin = begin;
  span.end = end();
  span.pages = segment->pages();
  span.page_first = segment->page_first();
  return span;
}

}  // namespace kvasir::model

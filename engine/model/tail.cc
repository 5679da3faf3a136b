#include "engine/model/tail.h"

#include "engine/base/check.h"
#include "engine/model/model.h"
#include "engine/model/segment_fit.h"

namespace kvasir::model {
namespace {

// Pages from the page of `first` to that of the last position before `end`.
int64_t PagesCovering(int64_t first, int64_t end) {
  if (end <= first) return 0;
  return (end - 1) / kernels::kPageSlots - first / kernels::kPageSlots + 1;
}

}  // namespace

Tail::Tail(PagePool& pool, int64_t first_position) : pool_(pool), first_position_(first_position) {
  KVASIR_CHECK(first_position >= 0);
}

Tail::~Tail() {
  for (std::byte* page : pages_) pool_.Release(PageKind::kTail, page);
}

int64_t Tail::PagesNeeded(int64_t end) const {
  return std::max<int64_t>(0, PagesCovering(first_position_, end) - pages());
}

base::Status Tail::Reserve(int64_t end) {
  const size_t before = pages_.size();
  for (int64_t left = PagesNeeded(end); left > 0; --left) {
    auto page = pool_.Acquire(PageKind::kTail);
    if (!page.ok()) {
      ReleasePagesFrom(before);
      return page.status();
    }
    pages_.push_back(*page);
  }
  return base::OkStatus();
}

void Tail::ReleasePagesFrom(size_t first) {
  while (pages_.size() > first) {
    pool_.Release(PageKind::kTail, pages_.back());
    pages_.pop_back();
  }
}

void Tail::Truncate(int64_t new_end) {
  KVASIR_CHECK(first_position_ <= new_end && new_end <= end());
  tokens_.resize(static_cast<size_t>(new_end - first_position_));
  ReleasePagesFrom(static_cast<size_t>(PagesCovering(first_position_, new_end)));
}

void Tail::Advance(std::span<const int32_t> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  KVASIR_CHECK(PagesNeeded(end()) == 0);
}

base::Status Tail::Append(const Model& model, const kv::KvSegment& segment) {
  KVASIR_RETURN_IF_ERROR(CheckFits(model, segment));
  if (segment.info().first_position != end()) {
    return base::InvalidArgument("segment starts at position {}, the tail ends at {}",
                                 segment.info().first_position, end());
  }
  const int64_t slots = segment.logical_tokens();
  KVASIR_RETURN_IF_ERROR(Reserve(end() + slots));
  MountHeads(model, segment, pages_, page_first(), RawKeys::kKeep);
  Advance(segment.info().tokens);
  return base::OkStatus();
}

std::shared_ptr<const kv::KvSegment> Tail::Cut(const Model& model, int64_t begin, int64_t cut_end,
                                               kv::SegmentInfo info) const {
  KVASIR_CHECK(first_position_ <= begin && begin < cut_end && cut_end <= end());
  info.first_position = begin;
  info.element_type = model.element_type();
  const auto first = tokens_.begin() + (begin - first_position_);
  info.tokens.assign(first, first + (cut_end - begin));
  auto segment =
      kv::KvSegment::Create(model.geometry(), std::move(info),
                            ExtractHeads(model, pages_, page_first(), begin, cut_end - begin));
  KVASIR_CHECK(segment.ok());
  return *std::move(segment);
}

kernels::Span Tail::span(int64_t span_end) const {
  kernels::Span span;
  span.frame = 0;
  span.begin = first_position_;
  span.end = span_end;
  span.pages = {pages_.data(), pages_.size()};
  span.page_first = page_first();
  return span;
}

}  // namespace kvasir::model

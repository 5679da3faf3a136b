#include "engine/model/page_pool.h"

#include <algorithm>

#include "engine/base/check.h"

namespace kvasir::model {

PagePool::PagePool(kernels::Backend& backend, const kernels::KvLayout& layout, size_t bytes_max)
    : backend_(backend), layout_(layout), bytes_max_(bytes_max) {}

PagePool::~PagePool() { KVASIR_CHECK(bytes_used_ == 0); }

size_t PagePool::page_bytes(PageKind kind) const {
  return kind == PageKind::kTail ? layout_.tail_bytes() : layout_.resident_bytes();
}

base::StatusOr<std::byte*> PagePool::Acquire(PageKind kind) {
  const size_t bytes = page_bytes(kind);
  const std::lock_guard lock(mutex_);
  if (bytes_used_ + bytes > bytes_max_) {
    return base::ResourceExhausted("KV pages: {} of {} bytes are in use, {} more were asked for",
                                   bytes_used_, bytes_max_, bytes);
  }
  Shelf& from = shelf(kind);
  if (from.idle.empty()) {
    // Idle pages of the other kind give way, so that memory held never passes bytes_max.
    Shelf& other = shelf(kind == PageKind::kTail ? PageKind::kResident : PageKind::kTail);
    if (bytes_used_ + bytes_idle_ + bytes > bytes_max_ && !other.idle.empty()) FreeIdle(other);
    from.buffers.push_back(backend_.Allocate(bytes));
    bytes_used_ += bytes;
    return from.buffers.back()->data();
  }
  std::byte* page = from.idle.back();
  from.idle.pop_back();
  bytes_idle_ -= bytes;
  bytes_used_ += bytes;
  return page;
}

void PagePool::FreeIdle(Shelf& shelf) {
  for (std::byte* page : shelf.idle) {
    const auto found = std::find_if(shelf.buffers.begin(), shelf.buffers.end(),
                                    [&](const auto& buffer) { return buffer->data() == page; });
    KVASIR_CHECK(found != shelf.buffers.end());
    bytes_idle_ -= (*found)->bytes();
    shelf.buffers.erase(found);
  }
  shelf.idle.clear();
}

void PagePool::Release(PageKind kind, std::byte* page) {
  const size_t bytes = page_bytes(kind);
  backend_.Zero(page, bytes);
  const std::lock_guard lock(mutex_);
  KVASIR_CHECK(bytes_used_ >= bytes);
  bytes_used_ -= bytes;
  bytes_idle_ += bytes;
  shelf(kind).idle.push_back(page);
}

size_t PagePool::bytes_used() const {
  const std::lock_guard lock(mutex_);
  return bytes_used_;
}

int64_t PagePool::pages_available(PageKind kind) const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>((bytes_max_ - bytes_used_) / page_bytes(kind));
}

}  // namespace kvasir::model

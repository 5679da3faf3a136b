// PagePool: KV pages in a backend's memory within a byte budget. A page is zero when it is handed
// out: it is overwritten when it comes back, so no byte of one user's state is ever in a page of
// another's.
//
// Threads: all methods may be called concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernels/backend.h"

namespace kvasir::model {

// kTail pages also hold raw keys; kResident pages are mounts.
enum class PageKind { kTail, kResident };

class PagePool {
 public:
  // `backend` and `layout` must outlive the pool.
  PagePool(kernels::Backend& backend, const kernels::KvLayout& layout, size_t bytes_max);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  const kernels::KvLayout& layout() const { return layout_; }
  kernels::Backend& backend() const { return backend_; }
  size_t page_bytes(PageKind kind) const;

  // A zeroed page. Errors: ResourceExhausted (bytes_max would be passed; says used and asked).
  base::StatusOr<std::byte*> Acquire(PageKind kind);
  // Zeroes the page and takes it back. REQUIRES: from Acquire of the same kind.
  void Release(PageKind kind, std::byte* page);

  size_t bytes_max() const { return bytes_max_; }
  // Bytes of pages handed out and not yet released.
  size_t bytes_used() const;
  // Pages of `kind` that could be acquired now.
  int64_t pages_available(PageKind kind) const;

 private:
  struct Shelf {
    std::vector<std::unique_ptr<kernels::Buffer>> buffers;  // every page ever made
    std::vector<std::byte*> idle;
  };
  // Gives the idle pages of `shelf` back to the backend. REQUIRES: mutex_ held.
  void FreeIdle(Shelf& shelf);
  Shelf& shelf(PageKind kind) { return shelves_[static_cast<int>(kind)]; }

  kernels::Backend& backend_;
  const kernels::KvLayout& layout_;
  const size_t bytes_max_;
  mutable std::mutex mutex_;
  Shelf shelves_[2];
  size_t bytes_used_ = 0;
  size_t bytes_idle_ = 0;
};

}  // namespace kvasir::model

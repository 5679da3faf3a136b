#include "engine/kernels/cpu/linear/aligned.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace kvasir::kernels::linear {
namespace {

constexpr size_t kLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{1} << 21;

size_t RoundUp(size_t size, size_t to) { return (size + to - 1) / to * to; }
size_t MappedBytes(size_t size) { return RoundUp(size, kPage); }

// Fresh pages on a huge-page boundary. Their length is not rounded up to huge pages: the rest would
// be resident memory.
uint8_t* MapHuge(size_t size) {
  const size_t length = MappedBytes(size) + kHugePage;
  void* map = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(map);
  const uintptr_t data = RoundUp(begin, kHugePage);
  const uintptr_t data_end = data + MappedBytes(size);
  if (data > begin) munmap(map, data - begin);
  if (begin + length > data_end)
    munmap(reinterpret_cast<void*>(data_end), begin + length - data_end);
  madvise(reinterpret_cast<void*>(data), data_end - data, MADV_HUGEPAGE);
  return reinterpret_cast<uint8_t*>(data);
}

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size) {
  if (size == 0 || size > SIZE_MAX / 2) return;
  if (size >= kHugePage) {
    data_ = MapHuge(size);
    return;
  }
  data_ = static_cast<uint8_t*>(std::aligned_alloc(kLine, RoundUp(size, kLine)));
  if (data_ != nullptr) std::memset(data_, 0, size);
}

AlignedBytes::~AlignedBytes() {
  if (data_ == nullptr) return;
  if (size_ >= kHugePage) {
    munmap(data_, MappedBytes(size_));
  } else {
    std::free(data_);
  }
}

}  // namespace kvasir::kernels::linear

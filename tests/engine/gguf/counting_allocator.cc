#include "tests/engine/gguf/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace kvasir::gguf {
namespace {
std::atomic<uint64_t> allocated_bytes{0};
}  // namespace

uint64_t AllocatedBytes() { return allocated_bytes.load(); }

// A request of more than 1 GiB stops the program: nothing in these tests asks for that.
void* Allocate(size_t size) {
  allocated_bytes.fetch_add(size);
  void* memory = size > (size_t{1} << 30) ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace kvasir::gguf

void* operator new(size_t size) { return kvasir::gguf::Allocate(size); }
void* operator new[](size_t size) { return kvasir::gguf::Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

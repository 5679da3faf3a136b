#include "memory/index/term_counts.h"

#include "memory/index/analyzer.h"

namespace kvasir::index {
namespace {

constexpr char kVersion = 1;

void PutVarint(uint32_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Takes a number from the front of `bytes`; false when there is none of at most 32 bits.
bool TakeVarint(std::string_view& bytes, uint32_t& value) {
  uint64_t sum = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    sum |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      value = static_cast<uint32_t>(sum);
      return sum <= UINT32_MAX;
    }
  }
  return false;
}

}  // namespace

std::string EncodeTermCounts(const TermCounts& counts) {
  std::string out(1, kVersion);
  PutVarint(static_cast<uint32_t>(counts.size()), out);
  for (const auto& [term, count] : counts) {
    PutVarint(static_cast<uint32_t>(term.size()), out);
    out += term;
    PutVarint(count, out);
  }
  return out;
}

base::StatusOr<TermCounts> DecodeTermCounts(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != kVersion) {
    return base::DataLoss("postings of {} bytes: unknown version", bytes.size());
  }
  std::string_view rest = bytes.substr(1);
  uint32_t terms = 0;
  TermCounts counts;
  bool ok = TakeVarint(rest, terms) && terms <= kTermsMax;
  for (uint32_t i = 0; ok && i < terms; ++i) {
    uint32_t size = 0, count = 0;
    ok = TakeVarint(rest, size) && size > 0 && size <= kTermBytesMax && size <= rest.size();
    if (!ok) break;
    std::string term(rest.substr(0, size));
    rest.remove_prefix(size);
    ok = TakeVarint(rest, count) && count > 0 && (counts.empty() || counts.rbegin()->first < term);
    if (ok) counts.emplace_hint(counts.end(), std::move(term), count);
  }
  if (!ok || !rest.empty()) return base::DataLoss("postings of {} bytes: malformed", bytes.size());
  return counts;
}

}  // namespace kvasir::index

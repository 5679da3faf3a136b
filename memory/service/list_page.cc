// Pages of lists that are ordered newest first.
#include <algorithm>
#include <charconv>

#include "memory/service/record_access.h"
#include "memory/service/sessions_impl.h"

namespace kvasir::service {

std::string ListPosition::Text() const {
  return fmt::format("{:016x}{}", static_cast<uint64_t>(create_us), id.Hex());
}

base::StatusOr<ListPosition> ListPosition::Parse(const std::string& text) {
  uint64_t time = 0;
  const auto id =
      text.size() == 48 ? ParseRecordId(std::string_view(text).substr(16)) : std::nullopt;
  if (id) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + 16, time, 16);
    if (error == std::errc() && end == text.data() + 16) {
      return ListPosition{static_cast<int64_t>(time), *id};
    }
  }
  return base::InvalidArgument("list position of {} characters is malformed", text.size());
}

base::Status CutPage(const ListPage& page, std::vector<ListPosition>& positions) {
  if (page.size < 1 || page.size > 1000) {
    return base::InvalidArgument("page of {} entries, the range is 1 to 1000", page.size);
  }
  if (!page.after.empty()) {
    KVASIR_ASSIGN_OR_RETURN(const ListPosition after, ListPosition::Parse(page.after));
    std::erase_if(positions, [&](const ListPosition& position) { return !(position < after); });
  }
  std::ranges::sort(positions, [](const ListPosition& a, const ListPosition& b) { return b < a; });
  if (std::ssize(positions) > page.size + 1) positions.resize(static_cast<size_t>(page.size + 1));
  return base::OkStatus();
}

}  // namespace kvasir::service

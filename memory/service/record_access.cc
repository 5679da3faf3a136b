#include "memory/service/record_access.h"

#include <algorithm>
#include <cstring>

namespace kvasir::service {

base::Status ForEachRecord(const store::Store& store, const store::UserKey& user, store::Kind kind,
                           const std::optional<store::RecordId>& id,
                           const std::function<base::Status(const store::Record&)>& visit) {
  store::ScanOptions options;
  options.user = user;
  options.kind = kind;
  options.id = id;
  while (true) {
    KVASIR_ASSIGN_OR_RETURN(const store::Page page, store.Scan(options));
    for (const store::Record& record : page.records) KVASIR_RETURN_IF_ERROR(visit(record));
    if (!page.more) return base::OkStatus();
    options.after = page.records.back().key;
  }
}

base::Status ForEachSegment(const store::Store& store, const store::UserKey& user,
                            const std::function<void(const store::SegmentRow&)>& visit) {
  std::optional<kv::SegmentId> after;
  while (true) {
    KVASIR_ASSIGN_OR_RETURN(const store::SegmentPage page, store.ListSegments(user, after, 1000));
    for (const store::SegmentRow& row : page.segments) visit(row);
    if (!page.more) return base::OkStatus();
    after = page.segments.back().id;
  }
}

base::StatusOr<std::vector<CheckpointRow>> ReadCheckpoint(const store::Store& store,
                                                          const store::UserKey& user,
                                                          const store::RecordId& session) {
  std::vector<CheckpointRow> rows;
  KVASIR_RETURN_IF_ERROR(ForEachRecord(store, user, store::Kind::kCheckpoint, session,
                                       [&](const store::Record& record) {
                                         auto row = Decode<CheckpointRow>(record.value);
                                         if (row.ok()) rows.push_back(*std::move(row));
                                         return row.status();
                                       }));
  return rows;
}

base::StatusOr<std::vector<TurnRecord>> ReadTurns(const store::Store& store,
                                                  const store::UserKey& user,
                                                  const store::RecordId& session, int64_t first,
                                                  int64_t last) {
  std::vector<TurnRecord> turns;
  store::ScanOptions options;
  options.user = user;
  options.kind = store::Kind::kTurn;
  options.id = session;
  if (first > 0) options.after = TurnKey(user, session, first - 1);
  while (true) {
    const int64_t wanted = last - first + 1 - std::ssize(turns);
    if (wanted <= 0) return turns;
    options.records_max = static_cast<size_t>(std::min<int64_t>(wanted, 1000));
    KVASIR_ASSIGN_OR_RETURN(const store::Page page, store.Scan(options));
    for (const store::Record& record : page.records) {
      if (record.key.sequence > static_cast<uint64_t>(last)) return turns;
      KVASIR_ASSIGN_OR_RETURN(turns.emplace_back(), Decode<TurnRecord>(record.value));
    }
    if (!page.more) return turns;
    options.after = page.records.back().key;
  }
}

std::optional<store::RecordId> ParseRecordId(std::string_view hex) {
  store::RecordId id;
  if (hex.size() != 2 * id.bytes.size()) return std::nullopt;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = 0; i < hex.size(); ++i) {
    const size_t digit = kDigits.find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    id.bytes[i / 2] = static_cast<uint8_t>(id.bytes[i / 2] << 4 | digit);
  }
  return id;
}

}  // namespace kvasir::service

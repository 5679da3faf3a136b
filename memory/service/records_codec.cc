#include "memory/service/records_codec.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace kvasir::service {
namespace {

using Json = nlohmann::json;

// Writer and Reader have the same `Field` methods, so that one function per record serves both
// ways.
class Writer {
 public:
  template <typename T>
  void Field(const char* key, const T& value) {
    map_[key] = ToJson(value);
  }
  Json Take() { return std::move(map_); }

 private:
  template <typename T>
  static Json ToJson(const T& value);

  Json map_ = Json::object();
};

class Reader {
 public:
  explicit Reader(const Json& map) : map_(map) {}

  template <typename T>
  void Field(const char* key, T& value) {
    const auto found = map_.find(key);
    if (found != map_.end() && !FromJson(*found, value) && bad_.empty()) bad_ = key;
  }
  // The first field that could not be read, or empty.
  const std::string& bad() const { return bad_; }

 private:
  template <typename T>
  static bool FromJson(const Json& json, T& value);

  const Json& map_;
  std::string bad_;
};

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, UserRecord>
void Fields(Io& io, R& r) {
  io.Field("tenant", r.ref.tenant);
  io.Field("user", r.ref.user);
  io.Field("create", r.create_us);
  io.Field("epoch", r.epoch);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, StatePart>
void Fields(Io& io, R& r) {
  io.Field("id", r.id);
  io.Field("digest", r.digest.bytes);
  io.Field("first", r.first_position);
  io.Field("tokens", r.tokens);
  io.Field("bytes", r.bytes);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, MountEntry>
void Fields(Io& io, R& r) {
  io.Field("memory", r.memory.bytes);
  io.Field("parts", r.parts);
  io.Field("begin", r.begin);
  io.Field("tokens", r.tokens);
  io.Field("visible", r.visible_from);
  io.Field("turn", r.turn);
  io.Field("deleted", r.deleted);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, SessionRecord>
void Fields(Io& io, R& r) {
  io.Field("id", r.id.bytes);
  io.Field("name", r.name);
  io.Field("display", r.display_name);
  io.Field("system", r.system_prompt);
  io.Field("mode", r.mode);
  io.Field("state", r.state);
  io.Field("date", r.date);
  io.Field("offset", r.offset);
  io.Field("next", r.next_turn);
  io.Field("running", r.running_turn);
  io.Field("mounts", r.mounts);
  io.Field("memory", r.memory);
  io.Field("tainted", r.tainted);
  io.Field("void", r.void_turn);
  io.Field("model", r.model_id_hex);
  io.Field("incognito", r.incognito);
  io.Field("create", r.create_us);
  io.Field("update", r.update_us);
  io.Field("close", r.close_us);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, TurnUsage>
void Fields(Io& io, R& r) {
  io.Field("computed", r.computed_tokens);
  io.Field("cached", r.session_cached_tokens);
  io.Field("memory", r.memory_tokens);
  io.Field("slots", r.memory_slots);
  io.Field("output", r.output_tokens);
  io.Field("queue_ms", r.queue_ms);
  io.Field("restore_ms", r.restore_ms);
  io.Field("ttft_ms", r.ttft_ms);
  io.Field("decode_ms", r.decode_ms);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, TurnRecord>
void Fields(Io& io, R& r) {
  io.Field("session", r.session.bytes);
  io.Field("number", r.number);
  io.Field("state", r.state);
  io.Field("mode", r.mode);
  io.Field("user", r.user_text);
  io.Field("reply", r.reply_text);
  io.Field("prompt_ids", r.prompt_ids);
  io.Field("reply_ids", r.reply_ids);
  io.Field("logprobs", r.reply_logprobs);
  io.Field("finish_reason", r.finish_reason);
  io.Field("request", r.request_id);
  io.Field("request_digest", r.request_digest.bytes);
  io.Field("sampling", r.sampling_json);
  io.Field("route", r.route_json);
  io.Field("usage", r.usage);
  io.Field("create", r.create_us);
  io.Field("finish", r.finish_us);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, MemoryRecord>
void Fields(Io& io, R& r) {
  io.Field("id", r.id.bytes);
  io.Field("name", r.name);
  io.Field("session", r.session.bytes);
  io.Field("state", r.state);
  io.Field("title", r.title);
  io.Field("turns", r.source_turns);
  io.Field("parts", r.parts);
  io.Field("model", r.model_id_hex);
  io.Field("build", r.build_id);
  io.Field("tokens", r.logical_tokens);
  io.Field("uses", r.use_count);
  io.Field("create", r.create_us);
  io.Field("update", r.update_us);
  io.Field("last_use", r.last_use_us);
  io.Field("delete", r.delete_us);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, CheckpointRow>
void Fields(Io& io, R& r) {
  io.Field("part", r.part);
  io.Field("turn", r.turn);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, JobRecord>
void Fields(Io& io, R& r) {
  io.Field("id", r.id.bytes);
  io.Field("type", r.type);
  io.Field("tenant", r.user.tenant);
  io.Field("user", r.user.user);
  io.Field("due", r.due_us);
  io.Field("attempts", r.attempts);
  io.Field("create", r.create_us);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, ErasureRecord>
void Fields(Io& io, R& r) {
  io.Field("id", r.id.bytes);
  io.Field("tenant", r.tenant);
  io.Field("user", r.user.bytes);
  io.Field("state", r.state);
  io.Field("request", r.request_us);
  io.Field("done", r.done_us);
  io.Field("sessions", r.sessions);
  io.Field("turns", r.turns);
  io.Field("memories", r.memories);
  io.Field("segments", r.segments);
  io.Field("residual", r.residual_records);
  io.Field("error", r.error);
}

template <typename Io, typename R>
requires std::is_same_v<std::remove_const_t<R>, Tombstone>
void Fields(Io& io, R& r) {
  io.Field("kind", r.kind);
  io.Field("delete", r.delete_us);
}

// The largest value of each enum, for readers.
constexpr int Last(MemoryMode) { return static_cast<int>(MemoryMode::kIncognito); }
constexpr int Last(SessionRecord::State) { return static_cast<int>(SessionRecord::State::kClosed); }
constexpr int Last(TurnRecord::State) { return static_cast<int>(TurnRecord::State::kDeleted); }
constexpr int Last(MemoryRecord::State) { return static_cast<int>(MemoryRecord::State::kDeleted); }
constexpr int Last(JobRecord::Type) { return static_cast<int>(JobRecord::Type::kSweep); }
constexpr int Last(ErasureRecord::State) { return static_cast<int>(ErasureRecord::State::kFailed); }
constexpr int Last(store::Kind) { return store::kKindMax; }

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsByteArray : std::false_type {};
template <size_t N>
struct IsByteArray<std::array<uint8_t, N>> : std::true_type {};

// Numbers of a vector as bytes, little-endian: ids are most of a turn.
template <typename T>
Json Bytes(const T* data, size_t count) {
  std::vector<uint8_t> bytes(count * sizeof(T));
  if (count > 0) std::memcpy(bytes.data(), data, bytes.size());
  return Json::binary(std::move(bytes));
}

template <typename T>
Json Writer::ToJson(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    // As bytes: texts are kept as they came, and CBOR text must be valid UTF-8.
    return Bytes(value.data(), value.size());
  } else if constexpr (IsByteArray<T>::value) {
    return Bytes(value.data(), value.size());
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<int>(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::is_same_v<T, std::optional<store::RecordId>>) {
    return value ? ToJson(value->bytes) : Json();
  } else if constexpr (IsVector<T>::value) {
    if constexpr (std::is_arithmetic_v<typename T::value_type>) {
      return Bytes(value.data(), value.size());
    } else {
      Json list = Json::array();
      for (const auto& item : value) list.push_back(ToJson(item));
      return list;
    }
  } else {
    Writer writer;
    Fields(writer, value);
    return writer.Take();
  }
}

template <typename T>
bool ReadNumber(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
    value = json.get<bool>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!json.is_number()) return false;
    value = json.get<T>();
  } else {
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned()) {
      const auto number = json.get<uint64_t>();
      value = static_cast<T>(number);
      return std::in_range<T>(number);
    }
    const auto number = json.get<int64_t>();
    value = static_cast<T>(number);
    return std::in_range<T>(number);
  }
  return true;
}

template <typename T>
bool ReadList(const Json& json, std::vector<T>& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (!json.is_binary()) return false;
    const auto& bytes = json.get_binary();
    if (bytes.size() % sizeof(T) != 0) return false;
    value.resize(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
  } else {
    if (!json.is_array()) return false;
    value.clear();
    for (const Json& item : json) {
      if (!item.is_object()) return false;
      Reader reader(item);
      Fields(reader, value.emplace_back());
      if (!reader.bad().empty()) return false;
    }
  }
  return true;
}

template <typename T>
bool Reader::FromJson(const Json& json, T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_binary()) return false;
    const auto& bytes = json.get_binary();
    value.assign(bytes.begin(), bytes.end());
    return true;
  } else if constexpr (IsByteArray<T>::value) {
    if (!json.is_binary() || json.get_binary().size() != value.size()) return false;
    std::ranges::copy(json.get_binary(), value.begin());
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    int number = 0;
    if (!ReadNumber(json, number) || number < 0 || number > Last(T())) return false;
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return ReadNumber(json, value);
  } else if constexpr (std::is_same_v<T, std::optional<store::RecordId>>) {
    value.reset();
    return json.is_null() || FromJson(json, value.emplace().bytes);
  } else if constexpr (IsVector<T>::value) {
    return ReadList(json, value);
  } else {
    if (!json.is_object()) return false;
    Reader reader(json);
    Fields(reader, value);
    return reader.bad().empty();
  }
}

template <typename R>
std::string EncodeRecord(const R& record) {
  Writer writer;
  Fields(writer, record);
  const std::vector<uint8_t> bytes = Json::to_cbor(writer.Take());
  return {bytes.begin(), bytes.end()};
}

// The map that `bytes` hold, or something that is no map. Some malformed lengths make the parser
// throw whatever it is told.
Json ParseMap(std::string_view bytes) {
  try {
    return Json::from_cbor(bytes.begin(), bytes.end(), /*strict=*/true, /*allow_exceptions=*/false);
  } catch (const Json::exception&) {
    return Json(Json::value_t::discarded);
  }
}

template <typename R>
base::StatusOr<R> DecodeRecord(std::string_view bytes, const char* what) {
  const Json map = ParseMap(bytes);
  if (!map.is_object()) return base::DataLoss("{} of {} bytes is no CBOR map", what, bytes.size());
  R record;
  Reader reader(map);
  Fields(reader, record);
  if (!reader.bad().empty()) return base::DataLoss("{}: field {} is malformed", what, reader.bad());
  return record;
}

}  // namespace

std::string Encode(const UserRecord& record) { return EncodeRecord(record); }
std::string Encode(const SessionRecord& record) { return EncodeRecord(record); }
std::string Encode(const TurnRecord& record) { return EncodeRecord(record); }
std::string Encode(const MemoryRecord& record) { return EncodeRecord(record); }
std::string Encode(const CheckpointRow& row) { return EncodeRecord(row); }
std::string Encode(const JobRecord& record) { return EncodeRecord(record); }
std::string Encode(const ErasureRecord& record) { return EncodeRecord(record); }
std::string Encode(const Tombstone& tombstone) { return EncodeRecord(tombstone); }

template <>
base::StatusOr<UserRecord> Decode(std::string_view bytes) {
  return DecodeRecord<UserRecord>(bytes, "user");
}
template <>
base::StatusOr<SessionRecord> Decode(std::string_view bytes) {
  return DecodeRecord<SessionRecord>(bytes, "session");
}
template <>
base::StatusOr<TurnRecord> Decode(std::string_view bytes) {
  return DecodeRecord<TurnRecord>(bytes, "turn");
}
template <>
base::StatusOr<MemoryRecord> Decode(std::string_view bytes) {
  return DecodeRecord<MemoryRecord>(bytes, "memory");
}
template <>
base::StatusOr<CheckpointRow> Decode(std::string_view bytes) {
  return DecodeRecord<CheckpointRow>(bytes, "checkpoint");
}
template <>
base::StatusOr<JobRecord> Decode(std::string_view bytes) {
  return DecodeRecord<JobRecord>(bytes, "job");
}
template <>
base::StatusOr<ErasureRecord> Decode(std::string_view bytes) {
  return DecodeRecord<ErasureRecord>(bytes, "erasure");
}
template <>
base::StatusOr<Tombstone> Decode(std::string_view bytes) {
  return DecodeRecord<Tombstone>(bytes, "tombstone");
}

}  // namespace kvasir::service

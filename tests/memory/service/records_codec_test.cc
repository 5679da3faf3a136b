// Records: read as written, tolerant of unknown and absent fields, refusing everything malformed.
#include "memory/service/records_codec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kvasir::service {
namespace {

using std::string_literals::operator""s;

TurnRecord SomeTurn() {
  TurnRecord turn;
  turn.session.bytes = {1, 2, 3};
  turn.number = 7;
  turn.state = TurnRecord::State::kDone;
  turn.mode = MemoryMode::kIncognito;
  turn.user_text = "not UTF-8 \xff\xfe and a zero \0 in it"s;
  turn.reply_text = "reply";
  turn.prompt_ids = {1, -2, 151643, INT32_MAX};
  turn.reply_ids = {5};
  turn.reply_logprobs = {-0.5, -1e300};
  turn.finish_reason = "STOP";
  turn.request_id = "r-1";
  turn.request_digest.bytes[31] = 9;
  turn.sampling_json = "{}";
  turn.usage.computed_tokens = INT64_MAX;
  turn.usage.ttft_ms = 1.25;
  turn.create_us = -1;
  return turn;
}

TEST(RecordsCodec, ATurnIsReadAsWritten) {
  const TurnRecord turn = SomeTurn();
  const auto read = Decode<TurnRecord>(Encode(turn));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Encode(*read), Encode(turn));
  EXPECT_EQ(read->user_text, turn.user_text);
  EXPECT_EQ(read->prompt_ids, turn.prompt_ids);
  EXPECT_EQ(read->reply_logprobs, turn.reply_logprobs);
  EXPECT_EQ(read->usage.computed_tokens, INT64_MAX);
  EXPECT_EQ(read->mode, MemoryMode::kIncognito);
}

TEST(RecordsCodec, ASessionIsReadAsWritten) {
  SessionRecord session;
  session.name = "s";
  session.memory = store::RecordId{{4}};
  MountEntry mount{.memory = {{5}}, .parts = {StatePart()}, .deleted = true};
  mount.parts[0].bytes = 12;
  session.mounts.push_back(mount);
  session.tainted = true;
  session.void_turn = 3;
  const auto read = Decode<SessionRecord>(Encode(session));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Encode(*read), Encode(session));
  EXPECT_EQ(read->memory, session.memory);
  ASSERT_EQ(read->mounts.size(), 1u);
  EXPECT_EQ(read->mounts[0].parts.at(0).bytes, 12);
  EXPECT_FALSE(Decode<SessionRecord>(Encode(SessionRecord()))->memory.has_value());
}

TEST(RecordsCodec, AMemoryIsReadAsWritten) {
  MemoryRecord memory;
  memory.id.bytes = {7};
  memory.state = MemoryRecord::State::kStale;
  memory.source_turns = {1, 2, 5};
  memory.parts.push_back({.id = {1}, .digest = {}, .first_position = 8, .tokens = 4, .bytes = 100});
  const auto read = Decode<MemoryRecord>(Encode(memory));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Encode(*read), Encode(memory));
  EXPECT_EQ(read->source_turns, memory.source_turns);
}

nlohmann::json AsJson(const std::string& bytes) { return nlohmann::json::from_cbor(bytes); }
std::string AsBytes(const nlohmann::json& json) {
  const std::vector<uint8_t> bytes = nlohmann::json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

TEST(RecordsCodec, UnknownFieldsArePassedOverAndAbsentOnesHaveDefaults) {
  nlohmann::json json = AsJson(Encode(SomeTurn()));
  json["of a later version"] = {{"a", 1}};
  json.erase("usage");
  json.erase("state");
  const auto read = Decode<TurnRecord>(AsBytes(json));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->usage.computed_tokens, 0);
  EXPECT_EQ(read->state, TurnRecord::State::kRunning);
  EXPECT_EQ(read->number, 7);
}

TEST(RecordsCodec, AFieldOfAnotherTypeOrRangeIsRefusedByName) {
  const nlohmann::json binary7 = nlohmann::json::binary({1, 2, 3, 4, 5, 6, 7});
  const std::pair<const char*, nlohmann::json> cases[] = {
      {"number", "seven"}, {"number", 1.5},         {"number", UINT64_MAX},
      {"state", 99},       {"state", -1},           {"mode", nullptr},
      {"user", 3},         {"session", binary7},    {"prompt_ids", 4},
      {"usage", 1},        {"prompt_ids", binary7}, {"logprobs", binary7}};
  for (const auto& [field, value] : cases) {
    nlohmann::json json = AsJson(Encode(SomeTurn()));
    json[field] = value;
    const auto read = Decode<TurnRecord>(AsBytes(json));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << field << value;
    EXPECT_NE(std::string(read.status().message()).find(field), std::string::npos) << field;
  }
}

TEST(RecordsCodec, EveryPrefixIsRefused) {
  const std::string bytes = Encode(SomeTurn());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(Decode<TurnRecord>(bytes.substr(0, size)).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(Decode<TurnRecord>(bytes + "x").ok());
}

TEST(RecordsCodec, EveryFlippedBitIsReadOrRefusedWithoutHarm) {
  const std::string bytes = Encode(SomeTurn());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    const auto read = Decode<TurnRecord>(damaged);
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace kvasir::service

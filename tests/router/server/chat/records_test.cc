// What is kept with a turn as JSON, events made again from a record, and the cache of the model_id;
// goal: what was written is what is read, and damage is an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/gguf/file.h"
#include "router/server/chat_call.h"
#include "router/server/model_host.h"
#include "router/server/replay.h"
#include "router/server/route_info.h"
#include "tests/support/tiny_model.h"

namespace kvasir::server {
namespace {

RouteInfo ExampleRoute() {
  RouteInfo route;
  route.mode = service::MemoryMode::kRead;
  route.restore_ms = 1.5;
  route.mounts.push_back({.memory = "m1",
                          .title = "a title",
                          .score = 2.25,
                          .tier = MountedInfo::Tier::kDisk,
                          .slots = 7,
                          .logical_tokens = 9,
                          .restore_ms = 0.5,
                          .digest = "ab",
                          .frame = -3,
                          .kept = true});
  route.unused.push_back({.memory = "m2",
                          .title = "another",
                          .score = 0.5,
                          .reason = policy::Unmounted::kSlotBudget,
                          .detail = "9 slots, 7 left"});
  return route;
}

TEST(TurnRecords, ARouteIsReadAsItWasWrittenButForTheTitles) {
  const RouteInfo route = ExampleRoute();
  const std::string json = ToJson(route);
  EXPECT_EQ(json.find("title"), std::string::npos);
  const auto read = RouteFromJson(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->mounts[0].title, "");
  EXPECT_EQ(read->mounts[0].frame, -3);
  EXPECT_EQ(read->unused[0].reason, policy::Unmounted::kSlotBudget);
  for (const char* bad : {"", "[]", "{", "{\"unused\":[{\"reason\":\"NONE\"}]}"}) {
    EXPECT_EQ(RouteFromJson(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
  EXPECT_TRUE(RouteFromJson("{\"mounts\":[{\"slots\":\"x\"}],\"mode\":99}").ok());
}

TEST(TurnRecords, SamplingIsReadAsItWasWritten) {
  SamplingRecord record;
  record.sampling.temperature = 0.7;
  record.sampling.seed = 2147483646;
  record.max_output_tokens = 12;
  record.stop = {"\n", "\"quoted\""};
  record.logprobs = true;
  const auto read = SamplingFromJson(ToJson(record));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), ToJson(record));
  for (const char* bad : {"", "{}", "{\"temperature\":\"hot\"}"}) {
    EXPECT_EQ(SamplingFromJson(bad).status().code(), absl::StatusCode::kDataLoss) << bad;
  }
}

TEST(TurnRecords, AReplayHasOneDeltaPerTokenAndItsTextAddsUp) {
  const testing::TinyModelFile model({});
  const auto file = *gguf::File::Open(model.path());
  const auto tokenizer = *tokenizer::Tokenizer::Create(*file);
  service::TurnRecord turn;
  turn.state = service::TurnRecord::State::kDone;
  turn.finish_reason = "STOP";
  for (const char c : std::string("one\xC3\xA4 two")) {
    turn.reply_ids.push_back(testing::TinyByteToken(static_cast<uint8_t>(c)));
  }
  turn.reply_ids.push_back(testing::kTinyImEnd);
  turn.route_json = ToJson(ExampleRoute());
  turn.sampling_json = ToJson(SamplingRecord());
  auto events = ReplayEvents(*tokenizer, turn);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), turn.reply_ids.size() + 3);
  std::string text;
  for (size_t i = 1; i + 2 < events->size(); ++i) text += std::get<DeltaEvent>((*events)[i]).text;
  EXPECT_EQ(text, "one\xC3\xA4 two");
  turn.state = service::TurnRecord::State::kDeleted;
  EXPECT_EQ(ReplayEvents(*tokenizer, turn).status().code(), absl::StatusCode::kNotFound);
}

TEST(ModelIdCache, TheFileIsReadAgainOnlyWhenItChanged) {
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("kvasir-id-cache-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string model = folder / "model", cache = folder / "cache.json";
  std::ofstream(model) << "one";
  int computed = 0;
  const auto id = [&] {
    return CachedModelId(model, cache, [&] {
      ++computed;
      return kv::ModelId{base::Sha256(base::AsBytes(fmt::format("{}", computed)))};
    });
  };
  const kv::ModelId first = id();
  EXPECT_EQ(id(), first);
  EXPECT_EQ(computed, 1);
  std::ofstream(model) << "other";
  EXPECT_NE(id(), first);
  EXPECT_EQ(computed, 2);
  for (const char* damaged : {"", "{}", "{\"file\":1,\"model_id\":2}"}) {
    std::ofstream(cache) << damaged;
    id();
  }
  EXPECT_EQ(computed, 5);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kvasir::server

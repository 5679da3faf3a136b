// Identity through the whole product: a state that went through engine, codec and RocksDB and was
// read by other objects or another process gives the logit *bits* of computing its tokens
// (docs/architecture.md, invariants I1 and I6). Goal: equality, no tolerance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <ostream>

#include "tests/router/server/identity/assembly.h"
#include "tests/router/server/identity/messages.h"
#include "tests/support/killed_child.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_models.h"

namespace kvasir::server {
namespace {

using kvasir::testing::FetchedModel;
using kvasir::testing::RunAndKill;
using kvasir::testing::TempFolder;

constexpr size_t kPoolBytes = size_t{1} << 30;
constexpr int64_t kReplyMax = 24;

struct Case {
  const char* name;
  const char* model;
  int64_t stored;  // tokens of the state
  int64_t behind;  // tokens run behind it
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.model; }

// Bit equality; a NaN is never equal.
void ExpectSameBits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (const float x : a) ASSERT_FALSE(x != x) << "NaN";
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

void ExpectSameKeysAndValues(const kv::KvSegment& a, const kv::KvSegment& b) {
  ASSERT_EQ(a.info().tokens, b.info().tokens);
  ASSERT_EQ(a.geometry(), b.geometry());
  ASSERT_TRUE(a.exact() && b.exact());
  for (size_t layer = 0; layer < a.geometry().layers.size(); ++layer) {
    for (int head = 0; head < a.geometry().layers[layer].kv_heads; ++head) {
      const kv::HeadSlots& x = a.head(static_cast<int>(layer), head);
      const kv::HeadSlots& y = b.head(static_cast<int>(layer), head);
      ASSERT_TRUE(x == y) << "layer " << layer << " head " << head;
    }
  }
}

int64_t EndOf(const kv::KvSegment& segment) {
  return segment.info().first_position + segment.logical_tokens();
}

class StoredState : public ::testing::TestWithParam<Case> {
 protected:
  std::string model() const { return FetchedModel(GetParam().model); }
  std::vector<std::string> Kill(const std::string& data, const std::string& what, int64_t number) {
    return RunAndKill("identity_child", {model(), data, what, std::to_string(number)}, 1);
  }
  // Loads the memory of `data` and compares it, and what stands behind it, with computing all.
  void ExpectMemoryIsAsComputed(const std::string& data, const std::string& built);
};

INSTANTIATE_TEST_SUITE_P(Models, StoredState,
                         ::testing::Values(Case{"SmolLm2", testing::kSmolLm2, 1303, 197},
                                           Case{"Qwen05", testing::kQwen05, 331, 67}),
                         [](const auto& one) { return std::string(one.param.name); });

void StoredState::ExpectMemoryIsAsComputed(const std::string& data, const std::string& built) {
  Assembly again(model(), data);
  const service::MemoryRecord memory = again.Memory();
  ASSERT_EQ(memory.state, service::MemoryRecord::State::kExact);
  const auto loaded = again.tier().memories().Load(Ana(), memory, INT64_MAX);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE(loaded->from_ram);
  const kv::KvSegment& segment = *loaded->segment;
  EXPECT_EQ(segment.ContentDigest().Hex(), built);
  ASSERT_EQ(segment.logical_tokens(), GetParam().stored);

  const auto base = again.host().prompt().base();
  const int64_t begin = std::ssize(base);
  kv::ContextChain chain(again.host().engine().model_id());
  EXPECT_EQ(segment.info().parent_id, chain.AddTokens(0, base).id());
  EXPECT_EQ(segment.info().context_id, chain.AddTokens(begin, segment.info().tokens).id());

  const runtime::SequenceMount mount = again.Mount(loaded->segment, begin);
  const std::vector<model::Mount> mounts = {{again.host().base().segment->resident, 0},
                                            {mount.segment->resident, begin}};
  EXPECT_EQ(mounts.back().frame(), 0);
  const auto behind = RandomIds(11, GetParam().behind, again.n_vocab());
  std::vector<int32_t> all(base.begin(), base.end());
  all.insert(all.end(), segment.info().tokens.begin(), segment.info().tokens.end());
  all.insert(all.end(), behind.begin(), behind.end());

  model::PagePool pool(*again.host().loaded().backend, again.host().loaded().model->layout(),
                       kPoolBytes);
  model::Tail mounted(pool, mounts.back().end()), whole(pool, 0);
  const auto expected = again.Run(whole, all, GetParam().behind, {});
  ExpectSameBits(again.Run(mounted, behind, GetParam().behind, mounts), expected);
  const auto cut = whole.Cut(*again.host().loaded().model, begin, begin + segment.logical_tokens(),
                             segment.info());
  ExpectSameKeysAndValues(segment, *cut);
}

TEST_P(StoredState, AMemoryReadByANewTierAndEngineGivesTheBitsOfComputingItsTokens) {
  const TempFolder data;
  std::string built;
  {
    Assembly first(model(), data.path());
    built = first.StoreMemory(GetParam().stored).Hex();
  }
  ExpectMemoryIsAsComputed(data.path(), built);
}

TEST_P(StoredState, AMemoryWhoseProcessWasKilledGivesTheBitsOfComputingItsTokens) {
  const TempFolder data;
  const auto lines = Kill(data.path(), "memory", GetParam().stored);
  ASSERT_EQ(lines.size(), 1u);
  ExpectMemoryIsAsComputed(data.path(), lines[0]);
}

// The turn that was never interrupted: prompt, then one token after the other, then what closes it.
void RunTurn(Assembly& assembly, const service::TurnRecord& turn, const SessionLayout& layout,
             const std::vector<model::Mount>& mounts, model::Tail& tail) {
  std::span<const int32_t> next = turn.prompt_ids;
  for (const int32_t& id : turn.reply_ids) {
    const auto logits = assembly.Run(tail, next, 1, mounts);
    ASSERT_EQ(std::ranges::max_element(logits) - logits.begin(), id) << "at " << tail.end();
    next = {&id, 1};
  }
  const auto rest = std::span(layout.ids).subspan(static_cast<size_t>(tail.size()));
  assembly.Run(tail, rest, 0, mounts);
}

TEST_P(StoredState, ASessionKilledInItsSecondReplyGoesOnWithTheBitsOfOneNeverInterrupted) {
  const TempFolder data;
  ASSERT_EQ(Kill(data.path(), "session", kReplyMax).size(), 1u);
  Assembly again(model(), data.path());
  const SessionLayout layout = again.Layout();
  ASSERT_EQ(layout.turns.size(), 1u);
  const auto turn = again.tier().sessions().GetTurn(Ana(), kSession, 1);
  ASSERT_TRUE(turn.ok()) << turn.status();
  const auto parts = again.tier().sessions().LoadState(Ana(), kSession);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_GE(parts->size(), 2u);
  ASSERT_EQ(EndOf(*parts->back()), layout.end());

  const std::vector<model::Mount> mounts = {{again.host().base().segment->resident, 0}};
  const model::Model& weights = *again.host().loaded().model;
  model::PagePool pool(*again.host().loaded().backend, weights.layout(), kPoolBytes);
  model::Tail resumed(pool, layout.offset), live(pool, layout.offset);
  for (const auto& part : *parts) ASSERT_TRUE(resumed.Append(weights, *part).ok());
  RunTurn(again, *turn, layout, mounts, live);
  ASSERT_EQ(live.end(), layout.end());
  for (const auto& part : *parts) {
    const auto cut = live.Cut(weights, part->info().first_position, EndOf(*part), part->info());
    ExpectSameKeysAndValues(*part, *cut);
  }
  const auto message = again.host().prompt().UserTurn(kSecondMessage);
  ExpectSameBits(again.Run(resumed, message, std::ssize(message), mounts),
                 again.Run(live, message, std::ssize(message), mounts));
}

// The same by way of the turns of the server: ids and logprobs of the reply.
TEST_P(StoredState, ASessionKilledInItsSecondReplyGivesTheReplyOfOneNeverInterrupted) {
  const TempFolder killed, whole;
  ASSERT_EQ(Kill(killed.path(), "session", kReplyMax).size(), 1u);
  service::TurnRecord expected, got;
  {
    Assembly assembly(model(), whole.path());
    assembly.Say(kFirstMessage, kReplyMax);
    expected = assembly.Say(kSecondMessage, kReplyMax);
  }
  Assembly assembly(model(), killed.path());
  got = assembly.Say(kSecondMessage, kReplyMax);
  EXPECT_EQ(got.number, 3);  // the second ended with the process
  EXPECT_EQ(got.prompt_ids, expected.prompt_ids);
  EXPECT_EQ(got.reply_ids, expected.reply_ids);
  EXPECT_EQ(got.reply_logprobs, expected.reply_logprobs);
  EXPECT_EQ(got.usage.computed_tokens, std::ssize(got.prompt_ids));
  EXPECT_EQ(got.usage.computed_tokens, expected.usage.computed_tokens);
  EXPECT_EQ(got.usage.session_cached_tokens, expected.usage.session_cached_tokens);
}

}  // namespace
}  // namespace kvasir::server

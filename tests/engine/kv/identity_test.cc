// Identity: every field that attention depends on changes the id it belongs to, and nothing else
// does. Method: mutate one field at a time, all ids must differ pairwise.
#include "engine/kv/identity.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "tests/engine/kv/test_segments.h"

namespace kvasir::kv {
namespace {

const base::Digest kWeights = base::Sha256(base::AsBytes("weights"));
const base::Digest kTokenizer = base::Sha256(base::AsBytes("tokenizer"));

std::vector<std::function<void(Geometry&)>> GeometryMutations() {
  return {[](Geometry& g) { g.layers[0].kind = StreamKind::kSlidingWindow; },
          [](Geometry& g) { g.layers[0].kv_heads += 1; },
          [](Geometry& g) { g.layers[0].k_width += 1; },
          [](Geometry& g) { g.layers[0].v_width += 1; },
          [](Geometry& g) { g.layers[0].rotated -= 2; },
          [](Geometry& g) { g.layers[0].rope = 1; },
          [](Geometry& g) { g.layers[1].window += 1; },
          [](Geometry& g) { g.layers.pop_back(); },
          [](Geometry& g) { std::swap(g.layers[0], g.layers[1]); },
          [](Geometry& g) { g.ropes[0].interleaved = true; },
          [](Geometry& g) { g.ropes[0].base += 1; },
          [](Geometry& g) { g.ropes[0].scale += 1; },
          [](Geometry& g) { g.ropes[0].factors[1] += 1; },
          [](Geometry& g) { g.ropes[0].factors.clear(); },
          [](Geometry& g) { g.ropes.pop_back(); }};
}

TEST(ModelId, EveryFieldOfTheGeometryChangesIt) {
  const Geometry geometry = TestGeometry({});
  std::set<base::Digest> ids = {MakeModelId(kWeights, kTokenizer, geometry).digest};
  for (const auto& mutate : GeometryMutations()) {
    Geometry mutated = geometry;
    mutate(mutated);
    ids.insert(MakeModelId(kWeights, kTokenizer, mutated).digest);
  }
  EXPECT_EQ(ids.size(), GeometryMutations().size() + 1);
}

TEST(ModelId, WeightsAndTokenizerChangeIt) {
  const Geometry geometry = TestGeometry({});
  const std::set<base::Digest> ids = {MakeModelId(kWeights, kTokenizer, geometry).digest,
                                      MakeModelId(kTokenizer, kTokenizer, geometry).digest,
                                      MakeModelId(kWeights, kWeights, geometry).digest,
                                      MakeModelId(kTokenizer, kWeights, geometry).digest};
  EXPECT_EQ(ids.size(), 4u);
}

TEST(BuildId, NamesItsPartsInOrder) {
  EXPECT_EQ(MakeBuildId(1, "cpu/1", "f16", "none").text,
            "codec=1;path=cpu/1;kv=f16;compaction=none");
}

TEST(ContextChain, IsTheSameHoweverTheTokensAreSplitOverCalls) {
  const std::vector<int32_t> tokens = {5, 6, 7, 8};
  const ModelId model{kWeights};
  const base::Digest whole = ContextChain(model).AddTokens(3, tokens).id();
  for (size_t cut = 0; cut <= tokens.size(); ++cut) {
    ContextChain chain(model);
    chain.AddTokens(3, std::span(tokens).first(cut));
    chain.AddTokens(3 + int64_t(cut), std::span(tokens).subspan(cut));
    EXPECT_EQ(chain.id(), whole) << cut;
  }
}

TEST(ContextChain, EverythingThatStandsInItChangesIt) {
  const ModelId model{kWeights};
  const base::Digest none{};
  const auto tokens = [&](int64_t at, std::vector<int32_t> ids) {
    return ContextChain(model).AddTokens(at, ids).id();
  };
  const auto mount = [&](const base::Digest& state, int64_t frame, int64_t begin, int64_t end,
                         const base::Digest& mask) {
    return ContextChain(model).AddMount(state, frame, begin, end, mask).id();
  };
  const std::set<base::Digest> ids = {
      ContextChain(model).id(),
      ContextChain(ModelId{kTokenizer}).id(),
      tokens(0, {1, 2}),
      tokens(1, {1, 2}),
      tokens(0, {2, 1}),
      tokens(0, {1, 2, 3}),
      tokens(0, {1}),
      mount(kWeights, 0, 5, 9, none),
      mount(kTokenizer, 0, 5, 9, none),
      mount(kWeights, 1, 5, 9, none),
      mount(kWeights, 0, 6, 9, none),
      mount(kWeights, 0, 5, 8, none),
      mount(kWeights, 0, 5, 9, kTokenizer),
      ContextChain(model).AddMount(kWeights, 0, 5, 9, none).AddTokens(9, std::vector{1}).id(),
      ContextChain(model).AddTokens(9, std::vector{1}).AddMount(kWeights, 0, 5, 9, none).id(),
  };
  EXPECT_EQ(ids.size(), 15u);
}

TEST(ContextChain, IsTheSameInEveryProcess) {
  // The value is part of the format: stored states are found by it.
  const std::vector<int32_t> tokens = {1, 2, 3};
  EXPECT_EQ(ContextChain(ModelId{kWeights}).AddTokens(0, tokens).id().Hex(),
            "91db242e25026d76857c08216b64db446b6a3b831e108e6feffa99482a58d6e1");
}

}  // namespace
}  // namespace kvasir::kv

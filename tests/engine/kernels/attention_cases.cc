#include "tests/engine/kernels/attention_cases.h"

#include <cmath>

namespace kvasir::kernels::testing {
namespace {

// Span layouts on small heads.
std::vector<WorldSpec> LayoutCases() {
  const WorldSpec base = {.q_heads = 3, .kv_heads = 1};
  std::vector<WorldSpec> cases;
  const auto add = [&](const char* name, std::vector<SequenceSpec> sequences) -> WorldSpec& {
    WorldSpec spec = base;
    spec.name = name;
    spec.sequences = std::move(sequences);
    return cases.emplace_back(std::move(spec));
  };
  add("one slot", {{.rows = 1}});
  for (const int64_t n : {63, 64, 65}) add("short prompt", {{.rows = n}});
  add("a mount of 1303 and 197 behind it", {{.mounts = {{.begin = 0, .end = 1303}},
                                             .tail_begin = 1303,
                                             .first_position = 1303,
                                             .rows = 197}});
  add("decode at depth", {{.tail_begin = 0, .first_position = 777, .rows = 1}});
  add("two frames, one not on a page, and a gap",
      {{.mounts = {{.begin = 0, .end = 100}, {.begin = 100, .end = 350, .frame = 37}},
        .tail_begin = 400,
        .first_position = 410,
        .rows = 70}});
  add("spans out of order, three frames in one split",
      {{.mounts = {{.begin = 200, .end = 330, .frame = 150},
                   {.begin = 0, .end = 70},
                   {.begin = 70, .end = 199, .frame = 5}},
        .tail_begin = 340,
        .first_position = 340,
        .rows = 20}});
  add("masked slots",
      {{.mounts = {{.begin = 0, .end = 64}, {.begin = 70, .end = 300, .frame = 9, .masked = true}},
        .tail_begin = 310,
        .first_position = 310,
        .rows = 12}});
  add("compacted spans with bias and padding",
      {{.mounts = {{.begin = 0, .end = 40},
                   {.begin = 500, .end = 900, .frame = 13, .sparse_slots = 304},
                   {.begin = 40, .end = 440, .sparse_slots = 16}},
        .tail_begin = 900,
        .first_position = 905,
        .rows = 9}})
      .kv_heads = 3;
  add("a gap of whole splits", {{.mounts = {{.begin = 0, .end = 30}},
                                 .tail_begin = 1100,
                                 .first_position = 1100,
                                 .rows = 3}});
  add("three sequences of different length",
      {{.rows = 5},
       {.mounts = {{.begin = 0, .end = 256}}, .tail_begin = 256, .first_position = 300, .rows = 1},
       {.mounts = {{.begin = 64, .end = 130, .frame = 64}},
        .tail_begin = 130,
        .first_position = 130,
        .rows = 70}});
  for (const int64_t window : {1, 5, 64, 100}) {
    add("window", {{.tail_begin = 0, .first_position = 20, .rows = 130},
                   {.mounts = {{.begin = 0, .end = 256, .frame = -3}},
                    .tail_begin = 256,
                    .first_position = 256,
                    .rows = 7}})
        .window = window;
  }
  return cases;
}

}  // namespace

std::vector<WorldSpec> AttentionCases() {
  std::vector<WorldSpec> cases = LayoutCases();
  struct Heads {
    int q, kv, k_width, v_width, rotated;
    bool interleaved;
  };
  for (const Heads heads :
       {Heads{1, 1, 64, 64, 64, false}, Heads{9, 3, 64, 64, 64, true},
        Heads{14, 2, 64, 64, 64, false}, Heads{12, 2, 128, 128, 128, false},
        Heads{8, 1, 48, 40, 32, false}, Heads{4, 1, 256, 256, 256, false},
        Heads{5, 1, 8, 8, 8, true}, Heads{7, 7, 16, 24, 0, false}, Heads{60, 1, 12, 20, 4, true}}) {
    WorldSpec spec;
    spec.name = "head ratio";
    spec.q_heads = heads.q;
    spec.kv_heads = heads.kv;
    spec.k_width = heads.k_width;
    spec.v_width = heads.v_width;
    spec.rotated = heads.rotated;
    spec.interleaved = heads.interleaved;
    spec.q_size = 3.0f;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(heads.k_width));
    spec.sequences = {{.mounts = {{.begin = 0, .end = 90, .frame = -70}},
                       .tail_begin = 90,
                       .first_position = 90,
                       .rows = 11}};
    cases.push_back(spec);
  }
  WorldSpec large = cases.back();
  large.name = "large keys and values";
  large.q_size = 1e-3f;
  large.k_size = 1e4f;
  large.v_size = 1e4f;
  cases.push_back(large);
  return cases;
}

}  // namespace kvasir::kernels::testing

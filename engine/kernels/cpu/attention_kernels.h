// The attention loops of a path, written once. Included inside an anonymous namespace by each path
// file, after elementwise_kernels.h.
//
// Lanes are slots in the scores and elements of a value in the output: no sum is split over lanes
// except the softmax's, over position mod 16.
#pragma once

inline constexpr int kPageTile = 64;  // kPageSlots

// `kBlocks` blocks of 16 slots × `kLines` lines, accumulated in registers over the key's elements.
template <class Element, int kLines, int kBlocks>
inline void ScoreBlocks(const ScoreTile& tile, int block) {
  const auto* keys = reinterpret_cast<const typename Element::Type*>(tile.keys) + block * kLanes;
  const float* q = tile.queries;
  Vec sums[kLines][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kLines; ++r) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) sums[r][b] = Set(0.0f);
  }
  for (int d = 0; d < tile.k_width; ++d, keys += kPageTile, q += kTilePitch) {
    Vec key[kBlocks];
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) key[b] = Element::Get(keys + b * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kLines; ++r) {
      const Vec query = Set(q[r]);
#pragma GCC unroll 8
      for (int b = 0; b < kBlocks; ++b) sums[r][b] = Fma(query, key[b], sums[r][b]);
    }
  }
  const Vec scale = Set(tile.scale);
#pragma GCC unroll 8
  for (int b = 0; b < kBlocks; ++b) {
    float* out = tile.out + (block + b) * kLanes;
#pragma GCC unroll 8
    for (int r = 0; r < kLines; ++r) {
      const Vec score = tile.beta == nullptr
                            ? Mul(sums[r][b], scale)
                            : Fma(sums[r][b], scale, Load(tile.beta + (block + b) * kLanes));
      Store(out + r * kPageTile, score);
    }
  }
}

template <class Element, int kLines>
inline void ScoreLines(const ScoreTile& tile) {
  constexpr int kBlocks = kLines == 1 ? 4 : kLines == 2 ? 2 : 1;
  int block = 0;
  for (; block + kBlocks <= tile.blocks; block += kBlocks) {
    ScoreBlocks<Element, kLines, kBlocks>(tile, block);
  }
  for (; block < tile.blocks; ++block) ScoreBlocks<Element, kLines, 1>(tile, block);
}

template <class Element>
void Scores(const ScoreTile& tile) {
  switch (tile.lines) {
    case 1:
      return ScoreLines<Element, 1>(tile);
    case 2:
      return ScoreLines<Element, 2>(tile);
    case 3:
      return ScoreLines<Element, 3>(tile);
    case 4:
      return ScoreLines<Element, 4>(tile);
    case 5:
      return ScoreLines<Element, 5>(tile);
    default:
      return ScoreLines<Element, 6>(tile);
  }
}

// `kBlocks` blocks of 16 value elements × `kLines` lines, accumulated in registers over the slots.
template <class Element, int kLines, int kBlocks>
inline void ValueBlocks(const ValueTile& tile, int block) {
  const auto* values =
      reinterpret_cast<const typename Element::Type*>(tile.values) + block * kLanes;
  const float* p = tile.p;
  float* out = tile.out + block * kLanes;
  Vec sums[kLines][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kLines; ++r) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) sums[r][b] = Load(out + r * tile.v_stride + b * kLanes);
  }
  for (int j = 0; j < tile.slots; ++j, values += tile.v_stride, ++p) {
    Vec value[kBlocks];
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) value[b] = Element::Get(values + b * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kLines; ++r) {
      const Vec weight = Set(p[r * kScorePitch]);
#pragma GCC unroll 8
      for (int b = 0; b < kBlocks; ++b) sums[r][b] = Fma(weight, value[b], sums[r][b]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kLines; ++r) {
#pragma GCC unroll 8
    for (int b = 0; b < kBlocks; ++b) Store(out + r * tile.v_stride + b * kLanes, sums[r][b]);
  }
}

template <class Element, int kLines>
inline void ValueLines(const ValueTile& tile) {
  constexpr int kBlocks = kLines == 1 ? 4 : kLines == 2 ? 2 : 1;
  const int blocks = tile.v_stride / kLanes;
  int block = 0;
  for (; block + kBlocks <= blocks; block += kBlocks) {
    ValueBlocks<Element, kLines, kBlocks>(tile, block);
  }
  for (; block < blocks; ++block) ValueBlocks<Element, kLines, 1>(tile, block);
}

template <class Element>
void Values(const ValueTile& tile) {
  switch (tile.lines) {
    case 1:
      return ValueLines<Element, 1>(tile);
    case 2:
      return ValueLines<Element, 2>(tile);
    case 3:
      return ValueLines<Element, 3>(tile);
    case 4:
      return ValueLines<Element, 4>(tile);
    case 5:
      return ValueLines<Element, 5>(tile);
    default:
      return ValueLines<Element, 6>(tile);
  }
}

Partial Softmax(float* scores, int blocks) {
  Vec max = Load(scores);
  for (int b = 1; b < blocks; ++b) max = Max(Load(scores + b * kLanes), max);
  Partial partial;
  partial.max = ReduceMax(max);
  if (partial.max == -__builtin_inff()) {  // the maximum passes over NaN
    Vec total = Load(scores);
    for (int b = 1; b < blocks; ++b) total = Add(total, Load(scores + b * kLanes));
    const float any = ReduceAdd(total);
    if (any == any) return partial;
    partial.max = any;
  }
  const Vec top = Set(partial.max);
  Vec sum = Set(0.0f);
  for (int b = 0; b < blocks; ++b) {
    const Vec p = Exp(Sub(Load(scores + b * kLanes), top));
    Store(scores + b * kLanes, p);
    sum = Add(sum, p);
  }
  partial.sum = ReduceAdd(sum);
  return partial;
}

void Merge(const Partial& later, const float* later_out, int v_stride, Partial& into,
           float* into_out) {
  const bool is_nan = later.max != later.max;
  const float max = is_nan || later.max > into.max ? later.max : into.max;
  float differences[kLanes] = {into.max - max, later.max - max};
  Store(differences, Exp(Load(differences)));
  const Vec old_weight = Set(differences[0]);
  const Vec new_weight = Set(differences[1]);
  float sums[kLanes] = {};
  Store(sums, Fma(Set(later.sum), new_weight, Mul(Set(into.sum), old_weight)));
  for (int d = 0; d < v_stride; d += kLanes) {
    const Vec old_out = Mul(Load(into_out + d), old_weight);
    Store(into_out + d, Fma(Load(later_out + d), new_weight, old_out));
  }
  into.max = max;
  into.sum = sums[0];
}

template <class Element>
constexpr KvKernels KernelsOf() {
  return {.scores = Scores<Element>,
          .values = Values<Element>,
          .store = StoreRow<Element>,
          .load = LoadRow<Element>};
}

constexpr Kernels kKernels = {.norm = NormRow,
                              .silu = GateRow<Silu>,
                              .gelu_tanh = GateRow<GeluTanh>,
                              .exp = ExpRow,
                              .rotate = RotateRow,
                              .softmax = Softmax,
                              .merge = Merge,
                              .divide = DivideRow,
                              .f16 = KernelsOf<HalfElement>(),
                              .f32 = KernelsOf<FloatElement>()};

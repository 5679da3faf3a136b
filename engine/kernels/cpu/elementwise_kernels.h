// The elementwise and normalising loops of a path, written once. Included inside an anonymous
// namespace by each path file, after its simd_*.h.
#pragma once

// The first n lanes from p, the others zero.
inline Vec LoadFirst(const float* p, int n) {
  if (n >= kLanes) return Load(p);
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return Load(lanes);
}
inline void StoreFirst(float* p, int n, Vec a) {
  if (n >= kLanes) return Store(p, a);
  float lanes[kLanes];
  Store(lanes, a);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}
inline int Left(int64_t n, int64_t at) {
  return n - at < kLanes ? static_cast<int>(n - at) : kLanes;
}

// exp(x) = 2^n · e^r, n = round(x / ln 2), |r| ≤ ln 2 / 2; e^r = 1 + r + r²·p(r), p a polynomial of
// degree 4 fitted for least relative error (3.7e-9). Below −126·ln 2 the result is 0, so that none
// is subnormal; above 127.5·ln 2 it stays at 2^127.5. NaN stays NaN.
inline Vec Exp(Vec x) {
  const Vec lowest = Set(-0x1.5d58a0p+6f);
  const Vec magic = Set(0x1.8p+23f);
  const Vec y = Min(Set(88.376f), x);
  const Vec t = Fma(y, Set(0x1.715476p+0f), magic);
  const Vec n = Negate(Sub(t, magic));
  Vec r = Fma(n, Set(0x1.62e4p-1f), y);
  r = Fma(n, Set(0x1.7f7d1cp-20f), r);
  Vec p = Fma(Set(0x1.6a23d0p-10f), r, Set(0x1.123a20p-7f));
  p = Fma(p, r, Set(0x1.5558f2p-5f));
  p = Fma(p, r, Set(0x1.555492p-3f));
  p = Fma(p, r, Set(0x1.fffffcp-2f));
  p = Add(Fma(p, Mul(r, r), r), Set(1.0f));
  return ZeroBelow(x, lowest, Mul(p, PowerOfTwo(t)));
}

void ExpRow(const float* x, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreFirst(out + i, Left(n, i), Exp(LoadFirst(x + i, Left(n, i))));
  }
}

void NormRow(const float* x, const float* weight, int64_t n, float eps, float* out) {
  Vec squares = Set(0.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec v = LoadFirst(x + i, Left(n, i));
    squares = Fma(v, v, squares);
  }
  const Vec mean = Div(Set(ReduceAdd(squares)), Set(static_cast<float>(n)));
  const Vec factor = Div(Set(1.0f), Sqrt(Add(mean, Set(eps))));
  for (int64_t i = 0; i < n; i += kLanes) {
    const int left = Left(n, i);
    const Vec v = Mul(LoadFirst(x + i, left), factor);
    StoreFirst(out + i, left, Mul(v, LoadFirst(weight + i, left)));
  }
}

// silu(a) = a / (1 + e^−a). Source: Elfwing et al., arXiv 1702.03118, section 2.
struct Silu {
  static Vec Apply(Vec a) { return Div(a, Add(Set(1.0f), Exp(Negate(a)))); }
};

// gelu(a) ≈ a/2 · (1 + tanh u) = a / (1 + e^−2u), u = √(2/π)·(a + 0.044715·a³). Source: Hendrycks &
// Gimpel, arXiv 1606.08415, section 2.
struct GeluTanh {
  static Vec Apply(Vec a) {
    const Vec inner = Fma(Mul(Set(0.044715f), Mul(a, a)), a, a);
    return Div(a, Add(Set(1.0f), Exp(Mul(Set(-1.5957691216f), inner))));
  }
};

template <class Gate>
void GateRow(const float* a, const float* b, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int left = Left(n, i);
    StoreFirst(out + i, left, Mul(Gate::Apply(LoadFirst(a + i, left)), LoadFirst(b + i, left)));
  }
}

void RotateRow(const float* head, int width, const Rotation& rotation, float* out) {
  const int pairs = rotation.rotated / 2;
  for (int i = 0; i < pairs; i += kLanes) {
    const int left = Left(pairs, i);
    const Vec c = LoadFirst(rotation.cos + i, left);
    const Vec s = LoadFirst(rotation.sin + i, left);
    Vec a, b;
    float even[kLanes] = {}, odd[kLanes] = {};
    if (rotation.interleaved) {
      for (int j = 0; j < left; ++j) {
        even[j] = head[2 * (i + j)];
        odd[j] = head[2 * (i + j) + 1];
      }
      a = Load(even);
      b = Load(odd);
    } else {
      a = LoadFirst(head + i, left);
      b = LoadFirst(head + pairs + i, left);
    }
    const Vec turned_a = Fma(a, c, Negate(Mul(b, s)));
    const Vec turned_b = Fma(a, s, Mul(b, c));
    if (rotation.interleaved) {
      Store(even, turned_a);
      Store(odd, turned_b);
      for (int j = 0; j < left; ++j) {
        out[2 * (i + j)] = even[j];
        out[2 * (i + j) + 1] = odd[j];
      }
    } else {
      StoreFirst(out + i, left, turned_a);
      StoreFirst(out + pairs + i, left, turned_b);
    }
  }
  for (int i = rotation.rotated; i < width; ++i) out[i] = head[i];
}

void DivideRow(const float* from, float sum, int64_t n, float* out) {
  for (int64_t i = 0; i < n; i += kLanes) {
    StoreFirst(out + i, Left(n, i), Div(LoadFirst(from + i, Left(n, i)), Set(sum)));
  }
}

// Elements of KvType::kF16 and kF32.
struct HalfElement {
  using Type = unsigned short;
  static Vec Get(const Type* p) { return LoadHalf(p); }
  static void Put(Type* p, Vec a) { StoreHalf(p, a); }
};
struct FloatElement {
  using Type = float;
  static Vec Get(const Type* p) { return Load(p); }
  static void Put(Type* p, Vec a) { Store(p, a); }
};

template <class Element>
void StoreRow(const float* from, int64_t n, std::byte* to) {
  auto* out = reinterpret_cast<typename Element::Type*>(to);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Element::Put(out + i, Load(from + i));
  if (i == n) return;
  typename Element::Type rounded[kLanes];
  Element::Put(rounded, LoadFirst(from + i, Left(n, i)));
  for (int64_t j = i; j < n; ++j) out[j] = rounded[j - i];
}

template <class Element>
void LoadRow(const std::byte* from, int64_t n, float* to) {
  const auto* in = reinterpret_cast<const typename Element::Type*>(from);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Element::Get(in + i));
  if (i == n) return;
  typename Element::Type elements[kLanes] = {};
  for (int64_t j = i; j < n; ++j) elements[j - i] = in[j];
  StoreFirst(to + i, Left(n, i), Element::Get(elements));
}

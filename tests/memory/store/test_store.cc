#include "tests/memory/store/test_store.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "engine/base/check.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

const base::RealClock& TestClock() {
  static const base::RealClock clock;
  return clock;
}

base::Entropy& TestEntropy() {
  static base::SystemEntropy entropy;
  return entropy;
}

std::shared_ptr<const kv::KvSegment> PlainSegment(uint64_t seed) {
  kv::Geometry geometry;
  geometry.ropes = {{.interleaved = false, .base = 1e6, .scale = 1, .factors = {}}};
  geometry.layers.assign(9, {.kv_heads = 1, .k_width = 8, .v_width = 8, .rotated = 8});
  kv::SegmentInfo info;
  info.tokens.assign(1 + seed % 300, static_cast<int32_t>(seed));
  std::vector<kv::HeadSlots> heads(9);
  for (kv::HeadSlots& head : heads) {
    const std::string bytes = Bytes(seed, info.tokens.size() * 16);
    head.slots = static_cast<int32_t>(info.tokens.size());
    for (const char byte : bytes) head.keys.push_back(std::byte(byte));
    head.values = head.keys;
  }
  auto segment = kv::KvSegment::Create(geometry, info, heads);
  KVASIR_CHECK(segment.ok());
  return *segment;
}

}  // namespace

TempDir::TempDir() {
  static std::atomic<int> next = 0;
  const fs::path base = fs::read_symlink("/proc/self/exe").parent_path() / "tmp";
  path_ = (base / (std::to_string(::getpid()) + "-" + std::to_string(next++))).string();
  fs::remove_all(path_);
  fs::create_directories(path_);
}

TempDir::~TempDir() {
  std::error_code error;
  fs::remove_all(path_, error);
}

Options TestOptions(const std::string& dir) {
  Options options;
  options.dir = dir;
  options.clock = &TestClock();
  options.entropy = &TestEntropy();
  options.cache_bytes = size_t{4} << 20;
  options.meta_buffer_bytes = size_t{1} << 20;
  options.states_buffer_bytes = size_t{1} << 20;
  return options;
}

std::unique_ptr<Store> OpenOrDie(const Options& options) {
  auto store = Store::Open(options);
  if (!store.ok()) std::cerr << store.status() << "\n";
  KVASIR_CHECK(store.ok());
  return std::move(store).value();
}

UserKey User(int number) {
  return MakeUserKey(IndexKey{}, "tenant", "user " + std::to_string(number));
}

RecordKey Key(int user, Kind kind, uint8_t id, uint64_t sequence) {
  RecordKey key = {User(user), kind, {}, sequence};
  key.id.bytes.fill(id);
  return key;
}

std::string Bytes(uint64_t seed, size_t size) {
  base::SeededEntropy entropy(seed);
  std::string bytes(size, '\0');
  entropy.Fill({reinterpret_cast<uint8_t*>(bytes.data()), size});
  return bytes;
}

kv::SegmentId SegmentIdOf(uint64_t seed) {
  kv::SegmentId id;
  base::SeededEntropy(seed).Fill(id);
  return id;
}

std::shared_ptr<const kv::EncodedSegment> Segment(const Store& store, int user, uint64_t seed) {
  const kv::DataKey key = store.key_ring().UserDataKey(User(user)).value();
  return std::make_shared<kv::EncodedSegment>(
      kv::Encode(*PlainSegment(seed), SegmentIdOf(seed), key, TestEntropy()));
}

base::Status CheckSegment(const Store& store, int user, uint64_t seed) {
  KVASIR_ASSIGN_OR_RETURN(const kv::EncodedSegment encoded,
                          store.ReadSegment(User(user), SegmentIdOf(seed)));
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey key, store.key_ring().UserDataKey(User(user)));
  KVASIR_ASSIGN_OR_RETURN(const auto segment, kv::Decode(encoded, key));
  if (segment->ContentDigest() == PlainSegment(seed)->ContentDigest()) return base::OkStatus();
  return base::Internal("segment {} decodes to other content", seed);
}

std::map<RecordKey, std::string> AllRecords(const Store& store, const UserKey& user) {
  std::map<RecordKey, std::string> records;
  for (int kind = 1; kind <= kKindMax; ++kind) {
    if (Kind(kind) == Kind::kSegment) continue;
    std::optional<RecordKey> after;
    bool more = true;
    while (more) {
      const auto page = store.Scan({.user = user, .kind = Kind(kind), .id = {}, .after = after});
      if (!page.ok()) std::cerr << page.status() << "\n";
      KVASIR_CHECK(page.ok());
      for (const Record& record : page->records) records[record.key] = record.value;
      if (!page->records.empty()) after = page->records.back().key;
      more = page->more;
    }
  }
  return records;
}

std::vector<std::string> FilesWith(const std::string& dir, const std::string& needle) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (bytes.find(needle) != std::string::npos) found.push_back(entry.path().string());
  }
  return found;
}

int OpenFileCount() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

}  // namespace kvasir::store

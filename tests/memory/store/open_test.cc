// Store::Open: who may open what. Method: one directory, changed by hand between two opens.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "engine/base/file.h"
#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

void Write(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Contents of every file under `dir`.
std::map<std::string, std::string> Tree(const std::string& dir) {
  std::map<std::string, std::string> tree;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    const std::string path = entry.path().string();
    tree[path] = entry.is_regular_file() ? base::ReadFile(path, 1 << 30).value() : "";
  }
  return tree;
}

void MakeStore(const std::string& dir) {
  const auto store = OpenOrDie(TestOptions(dir));
  ASSERT_TRUE(store->Commit(Batch().Put(Key(1, Kind::kUser, 1, 0), "value")).ok());
}

TEST(StoreOpen, MakesAPrivateDirectoryAndFindsItAgain) {
  const TempDir temp;
  const std::string dir = temp.path() + "/data";
  MakeStore(dir);
  EXPECT_EQ(fs::status(dir).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir + "/keys").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(dir + "/keys/data.key").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(OpenOrDie(TestOptions(dir))->Get(Key(1, Kind::kUser, 1, 0)).value(), "value");
}

TEST(StoreOpen, RefusesANewerFormatAndTouchesNothing) {
  const TempDir temp;
  MakeStore(temp.path());
  std::string format = base::ReadFile(temp.path() + "/FORMAT", 4096).value();
  format.replace(format.find('1'), 1, "2");
  Write(temp.path() + "/FORMAT", format);
  const auto before = Tree(temp.path());
  const base::Status status = Store::Open(TestOptions(temp.path())).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("store format 2, this program reads up to 1"), std::string::npos);
  EXPECT_EQ(Tree(temp.path()), before);
}

TEST(StoreOpen, RefusesADirectoryOfSomethingElseAndTouchesNothing) {
  const TempDir temp;
  Write(temp.path() + "/thesis.txt", "years of work");
  const auto before = Tree(temp.path());
  const base::Status status = Store::Open(TestOptions(temp.path())).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(Tree(temp.path()), before);
}

TEST(StoreOpen, RefusesADamagedFormat) {
  const TempDir temp;
  MakeStore(temp.path());
  for (const std::string_view text :
       {"", "kvasir-store", "kvasir-store 1", "kvasir-store x\n", "kvasir-store 0\nkeys 00\n",
        "kvasir-store 99999999999999999999\nkeys 00\n", "kvasir-store 1\nkeys 00"}) {
    Write(temp.path() + "/FORMAT", text);
    EXPECT_TRUE(absl::IsDataLoss(Store::Open(TestOptions(temp.path())).status())) << text;
  }
}

TEST(StoreOpen, SaysWhoHasTheDirectory) {
  const TempDir temp;
  const auto store = OpenOrDie(TestOptions(temp.path()));
  const base::Status status = Store::Open(TestOptions(temp.path())).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(fmt::format("in use by process {} (", ::getpid())),
            std::string::npos)
      << status;
}

TEST(StoreOpen, RefusesKeysThatOthersCouldRead) {
  const TempDir temp;
  MakeStore(temp.path());
  const std::string key = temp.path() + "/keys/data.key";
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Store::Open(TestOptions(temp.path())).status()));
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  ASSERT_EQ(::chmod((temp.path() + "/keys").c_str(), 0711), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Store::Open(TestOptions(temp.path())).status()));
}

TEST(StoreOpen, RefusesMissingDamagedAndForeignKeys) {
  const TempDir temp;
  const TempDir other;
  MakeStore(temp.path());
  MakeStore(other.path());
  const std::string path = temp.path() + "/keys/data.key";
  const std::string key = base::ReadFile(path, 4096).value();
  for (const size_t at : {size_t{0}, size_t{20}, key.size() - 1}) {
    std::string damaged = key;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    Write(path, damaged);
    EXPECT_TRUE(absl::IsDataLoss(Store::Open(TestOptions(temp.path())).status())) << at;
  }
  Write(path, base::ReadFile(other.path() + "/keys/data.key", 4096).value());
  EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(TestOptions(temp.path())).status()));
  fs::remove(path);
  EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(TestOptions(temp.path())).status()));
  EXPECT_FALSE(fs::exists(path));
  Write(path, key);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(Store::Open(TestOptions(temp.path())).ok());
}

TEST(StoreOpen, NeverMakesALostInstanceAnew) {
  for (const std::string instance : {"/meta", "/states"}) {
    const TempDir temp;
    MakeStore(temp.path());
    fs::remove_all(temp.path() + instance);
    const base::Status status = Store::Open(TestOptions(temp.path())).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST(StoreOpen, FinishesAStoreWhoseMakingWasInterrupted) {
  const TempDir temp;
  MakeStore(temp.path());
  fs::remove(temp.path() + "/FORMAT");
  EXPECT_EQ(OpenOrDie(TestOptions(temp.path()))->Get(Key(1, Kind::kUser, 1, 0)).value(), "value");
  // Without its keys it could only be made anew, and that would lose what it holds.
  fs::remove(temp.path() + "/FORMAT");
  fs::remove(temp.path() + "/keys/data.key");
  EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(TestOptions(temp.path())).status()));
}

TEST(StoreOpen, RefusesALogThatIsDamagedInTheMiddle) {
  const TempDir temp;
  {
    const auto store = OpenOrDie(TestOptions(temp.path()));
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(store->Commit(Batch().Put(Key(1, Kind::kTurn, 1, i), Bytes(i, 500))).ok());
    }
  }
  int damaged = 0;
  for (const auto& entry : fs::directory_iterator(temp.path() + "/meta")) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    std::string log = base::ReadFile(entry.path().string(), 1 << 30).value();
    log[log.size() / 2] = static_cast<char>(log[log.size() / 2] ^ 1);
    Write(entry.path().string(), log);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  const base::Status status = Store::Open(TestOptions(temp.path())).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST(StoreOpen, FilesAndDescriptorsReturnToBaseline) {
  const TempDir temp;
  MakeStore(temp.path());
  const int before = OpenFileCount();
  for (int i = 0; i < 5; ++i) OpenOrDie(TestOptions(temp.path()));
  EXPECT_EQ(OpenFileCount(), before);
}

}  // namespace
}  // namespace kvasir::store

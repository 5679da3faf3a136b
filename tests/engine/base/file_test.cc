// Files: maps and reads refuse what is no regular file of an allowed size; a durable write replaces
// the file whole or leaves the old one.
#include "engine/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kvasir::base {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string pattern = (fs::temp_directory_path() / "kvasir-file-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
  }
  ~FileTest() override { fs::remove_all(dir_); }
  std::string Path(const std::string& name) const { return (dir_ / name).string(); }

  fs::path dir_;
};

std::string Text(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

TEST_F(FileTest, AMapHoldsTheBytesOfTheFile) {
  const std::string contents("a\0\xff\n", 4);
  ASSERT_TRUE(WriteFileDurably(Path("f"), contents).ok());
  const auto map = MappedFile::Open(Path("f"));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(Text((*map)->bytes()), contents);
}

TEST_F(FileTest, AMapOfAnEmptyFileIsEmpty) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "").ok());
  const auto map = MappedFile::Open(Path("f"));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_TRUE((*map)->bytes().empty());
}

TEST_F(FileTest, AMapOutlivesTheNameOfItsFile) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "old").ok());
  const auto map = MappedFile::Open(Path("f"));
  ASSERT_TRUE(map.ok()) << map.status();
  ASSERT_TRUE(WriteFileDurably(Path("f"), "new").ok());
  EXPECT_EQ(Text((*map)->bytes()), "old");
}

TEST_F(FileTest, ReleasedPagesCanBeReadAgain) {
  std::string contents;
  for (int i = 0; i < 70000; ++i) contents.push_back(static_cast<char>(i % 251));
  ASSERT_TRUE(WriteFileDurably(Path("f"), contents).ok());
  const auto map = MappedFile::Open(Path("f"));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(Text((*map)->bytes()), contents);
  (*map)->Release(0, contents.size());
  (*map)->Release(4095, 4098);
  (*map)->Release(contents.size(), 0);
  EXPECT_EQ(Text((*map)->bytes()), contents);
}

TEST_F(FileTest, WhatIsMissingIsNotFound) {
  EXPECT_EQ(MappedFile::Open(Path("no")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(Path("no"), 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(WriteFileDurably(Path("no/f"), "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(FileTest, FoldersFifosAndDevicesAreRefusedWithoutWaiting) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {dir_.string(), Path("fifo"), std::string("/dev/zero")}) {
    const Status mapped = MappedFile::Open(path).status();
    EXPECT_EQ(mapped.code(), absl::StatusCode::kInvalidArgument) << mapped;
    const Status read = ReadFile(path, 10).status();
    EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument) << read;
    EXPECT_NE(ToStd(read.message()).find(path), std::string_view::npos) << read;
  }
}

TEST_F(FileTest, ReadingStopsAtTheBoundAndNamesBothSizes) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "12345").ok());
  EXPECT_EQ(*ReadFile(Path("f"), 5), "12345");
  const Status status = ReadFile(Path("f"), 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(ToStd(status.message()).find("has 5 bytes, at most 4"), std::string_view::npos)
      << status;
}

TEST_F(FileTest, ADurableWriteReplacesTheFileAndLeavesNothingBeside) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "a long first version").ok());
  ASSERT_TRUE(WriteFileDurably(Path("f"), "short").ok());
  EXPECT_EQ(*ReadFile(Path("f"), 100), "short");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(FileTest, ADurableWriteIsReadableByItsOwnerOnly) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "secret").ok());
  struct stat info;
  ASSERT_EQ(stat(Path("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFile) {
  ASSERT_TRUE(WriteFileDurably(Path("f"), "old").ok());
  ASSERT_TRUE(fs::create_directory(Path("f.part")));  // the place of the new contents is taken
  const Status status = WriteFileDurably(Path("f"), "new");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(*ReadFile(Path("f"), 100), "old");
}

TEST_F(FileTest, AFailedRenameKeepsTheOldEntry) {
  ASSERT_TRUE(fs::create_directories(Path("d/child")));  // a file cannot replace a folder
  EXPECT_FALSE(WriteFileDurably(Path("d"), "new").ok());
  EXPECT_TRUE(fs::is_directory(Path("d/child")));
}

TEST_F(FileTest, ARelativePathIsWrittenInTheWorkingDirectory) {
  const fs::path before = fs::current_path();
  fs::current_path(dir_);
  const Status status = WriteFileDurably("plain", "x");
  fs::current_path(before);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(Path("plain"), 10), "x");
}

}  // namespace
}  // namespace kvasir::base

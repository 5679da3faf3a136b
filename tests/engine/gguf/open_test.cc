// Open: the same checks on a mapped file; the tensors of the tiny golden models.
#include <gtest/gtest.h>

#include "engine/gguf/file.h"

namespace kvasir::gguf {
namespace {

TEST(Open, ReadsTheTinyModelsOfAllArchitectures) {
  const std::pair<const char*, size_t> models[] = {{"llama", 20}, {"qwen2", 27}, {"gemma3", 93}};
  for (const auto& [name, tensors] : models) {
    const auto file = File::Open(std::string("tests/golden/tiny/") + name + ".gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->tensors().size(), tensors);
    EXPECT_EQ(*(*file)->GetString("general.architecture"), name);
    const Tensor* embedding = (*file)->FindTensor("token_embd.weight");
    ASSERT_NE(embedding, nullptr);
    EXPECT_EQ(embedding->columns(), 16);
    EXPECT_EQ(embedding->rows(), 40);
  }
}

TEST(Open, DataCanBeReadAgainAfterRelease) {
  const auto file = File::Open("tests/golden/tiny/gemma3.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  for (const Tensor& tensor : (*file)->tensors()) {
    const std::vector<uint8_t> before(tensor.data.begin(), tensor.data.end());
    (*file)->Release(tensor);
    ASSERT_EQ(std::vector<uint8_t>(tensor.data.begin(), tensor.data.end()), before) << tensor.name;
  }
}

TEST(Open, SaysWhichFileIsMissingOrIsNoFile) {
  EXPECT_EQ(File::Open("tests/golden/none.gguf").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(File::Open("tests/golden").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kvasir::gguf

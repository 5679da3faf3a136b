#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <filesystem>

#include "engine/base/check.h"

namespace kvasir::testing {

TempFolder::TempFolder() {
  path_ = (std::filesystem::temp_directory_path() / "kvasir-test-XXXXXX").string();
  KVASIR_CHECK(mkdtemp(path_.data()) != nullptr);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace kvasir::testing

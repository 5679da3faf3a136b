// Replays the files and folders given as arguments through a fuzz target's entry point: what `ctest
// -L fuzz` runs in builds without libFuzzer. Fails when there is nothing to replay.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

// The regular files that `argument` names or, as a folder, holds at any depth.
void Collect(const fs::path& argument, std::set<fs::path>& files) {
  std::error_code error;
  if (fs::is_directory(argument, error)) {
    for (const auto& entry : fs::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) files.insert(entry.path());
    }
  } else {
    files.insert(argument);
  }
}

// Runs the target on a buffer of exactly the file's size, so that AddressSanitizer sees a read past
// its end.
bool Replay(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(in)),
                                   std::istreambuf_iterator<char>());
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return false;
  }
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::set<fs::path> files;
  for (int i = 1; i < argc; ++i) Collect(argv[i], files);
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE_OR_FOLDER...; no input found\n", argv[0]);
    return 1;
  }
  for (const fs::path& file : files) {
    if (!Replay(file)) return 1;
  }
  std::printf("%zu inputs replayed\n", files.size());
  return 0;
}

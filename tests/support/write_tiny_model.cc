// write_tiny_model FILE: writes the tiny chat model to a file, for tests that start real servers.
#include <fstream>
#include <iostream>

#include "tests/support/tiny_model.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_tiny_model FILE\n";
    return 2;
  }
  const std::string model = kvasir::testing::MakeTinyModel({});
  std::ofstream out(argv[1], std::ios::binary);
  out.write(model.data(), static_cast<std::streamsize>(model.size()));
  out.close();
  return out ? 0 : 1;
}

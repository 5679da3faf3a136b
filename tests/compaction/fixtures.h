// Captured heads with what a right solver makes of them: tests/golden/am (formulas and tolerances
// in its README).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compaction/solver/teacher.h"
#include "tests/support/npy.h"

namespace kvasir::compaction {

struct HeadFixture {
  std::filesystem::path folder;
  HeadCapture capture;
  MatrixF outputs;   // [n, dv]
  VectorF log_mass;  // [n]
  VectorF alpha;     // [n]
  nlohmann::json expected;

  MatrixF Matrix(const std::string& name) const;
  VectorF Vector(const std::string& name) const;
  std::vector<int32_t> Indices(const std::string& name) const;
};

// name: head0, head1, head2. Tests run in the repository root.
HeadFixture ReadHeadFixture(const std::string& name);

}  // namespace kvasir::compaction

#include "tests/compaction/fixtures.h"

#include <fstream>

namespace kvasir::compaction {

MatrixF HeadFixture::Matrix(const std::string& name) const {
  const auto array = test::ReadNpyFloat(folder / (name + ".npy")).value();
  return Eigen::Map<const MatrixF>(array.values.data(), array.rows, array.columns);
}

VectorF HeadFixture::Vector(const std::string& name) const {
  const auto array = test::ReadNpyFloat(folder / (name + ".npy")).value();
  return Eigen::Map<const VectorF>(array.values.data(), array.rows);
}

std::vector<int32_t> HeadFixture::Indices(const std::string& name) const {
  return test::ReadNpyInt(folder / (name + ".npy")).value().values;
}

HeadFixture ReadHeadFixture(const std::string& name) {
  HeadFixture fixture;
  fixture.folder = std::filesystem::path("tests/golden/am") / name;
  std::ifstream file(fixture.folder / "expected.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  fixture.expected = all.at("expected");
  fixture.outputs = fixture.Matrix("teacher_Y");
  fixture.log_mass = fixture.Vector("teacher_logmass");
  fixture.alpha = fixture.Vector("alpha");
  HeadCapture& capture = fixture.capture;
  capture.keys = fixture.Matrix("K");
  capture.values = fixture.Matrix("V");
  capture.queries = fixture.Matrix("Q");
  capture.scale = all.at("s");
  // Of the whole context: the block's mass is its alpha of it.
  capture.log_sum_exp =
      fixture.log_mass.cast<double>() - fixture.alpha.cast<double>().array().log().matrix();
  return fixture;
}

}  // namespace kvasir::compaction

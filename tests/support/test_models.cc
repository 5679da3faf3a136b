#include "tests/support/test_models.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "engine/base/check.h"

namespace kvasir::testing {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

template <typename T>
T ValueOrDie(base::StatusOr<T> value) {
  if (!value.ok()) Die(value.status().ToString());
  return std::move(value).value();
}

}  // namespace

std::string FetchedModel(const std::string& file) {
  const char* dir = std::getenv("KVASIR_MODELS");
  const std::string path = std::string(dir == nullptr ? "models" : dir) + "/" + file;
  if (!std::filesystem::exists(path)) {
    Die(path +
        " is not there: run ./dev test, which fetches it, or set KVASIR_MODELS to a directory that "
        "has it");
  }
  return path;
}

TestModel::TestModel(const std::string& path, kernels::CpuPath cpu_path,
                     kernels::Precision precision, int thread_count, int64_t positions_max) {
  file = ValueOrDie(gguf::File::Open(path));
  threads = std::make_unique<base::ThreadPool>(thread_count);
  backend = ValueOrDie(kernels::MakeCpuBackend(cpu_path, precision, *threads));
  const auto config = ValueOrDie(model::Config::FromFile(*file));
  model =
      ValueOrDie(model::Model::Load(*file, *backend,
                                    {.rows_max = 512,
                                     .logits_rows_max = 16,
                                     .positions_max = std::min(positions_max, config.n_ctx_train)},
                                    nullptr));
  pool = std::make_unique<model::PagePool>(*backend, model->layout(), size_t{2} << 30);
}

std::vector<float> TestModel::Run(model::Tail& tail, const std::vector<int32_t>& tokens,
                                  const std::vector<int64_t>& wanted,
                                  const std::vector<model::Mount>& mounts, int64_t chunk) {
  std::vector<float> logits(wanted.size() * n_vocab());
  size_t filled = 0;
  for (int64_t begin = 0; begin < static_cast<int64_t>(tokens.size());) {
    int64_t end = std::min<int64_t>(begin + chunk, tokens.size());
    // A step gives logits for its last rows only: it ends behind the next wanted row.
    const bool wants = filled < wanted.size() && wanted[filled] < end;
    if (wants) end = wanted[filled] + 1;
    const model::SequenceStep step = {.tokens = std::span(tokens).subspan(begin, end - begin),
                                      .tail = &tail,
                                      .mounts = mounts,
                                      .logits_rows = wants ? 1 : 0};
    KVASIR_CHECK(tail.Reserve(tail.end() + end - begin).ok());
    const std::span<float> out =
        std::span(logits).subspan(filled * n_vocab(), wants ? n_vocab() : 0);
    const base::Status status = model->Forward({&step, 1}, out);
    if (!status.ok()) Die(status.ToString());
    filled += wants ? 1 : 0;
    begin = end;
  }
  KVASIR_CHECK(filled == wanted.size());
  return logits;
}

}  // namespace kvasir::testing

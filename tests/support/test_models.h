// Models for tests: the small golden ones of the repository and the fetched ones of the directory
// KVASIR_MODELS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/thread_pool.h"
#include "engine/gguf/file.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/model/model.h"
#include "engine/model/page_pool.h"

namespace kvasir::testing {

inline constexpr char kSmolLm2[] = "smollm2-135m-instruct-q4_1.gguf";
inline constexpr char kQwen05[] = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";

// Path of a fetched model. Ends the test program with a message that says how to fetch it when it
// is not there.
std::string FetchedModel(const std::string& file);

// A model with its own threads, backend and page pool. A file or path that cannot be used ends the
// program.
struct TestModel {
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<base::ThreadPool> threads;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<model::PagePool> pool;

  TestModel(const std::string& path, kernels::CpuPath cpu_path, kernels::Precision precision,
            int thread_count = 2, int64_t positions_max = 4096);

  int64_t n_vocab() const { return model->config().n_vocab; }
  // Runs `tokens` through `tail` in chunks of at most `chunk` rows and returns the logits of the
  // rows whose indices (into `tokens`) are in `wanted`, ascending: [wanted.size(), n_vocab].
  std::vector<float> Run(model::Tail& tail, const std::vector<int32_t>& tokens,
                         const std::vector<int64_t>& wanted,
                         const std::vector<model::Mount>& mounts = {}, int64_t chunk = 512);
};

}  // namespace kvasir::testing

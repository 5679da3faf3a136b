#include "engine/runtime/loaded_model.h"

#include <sched.h>

#include <algorithm>

namespace kvasir::runtime {
namespace {

// Cores this process may run on (a container or taskset may leave fewer than the machine has).
int UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

base::StatusOr<LoadedModel> LoadedModel::Load(const LoadOptions& options,
                                              const std::function<void(double)>& progress) {
  LoadedModel loaded;
  KVASIR_ASSIGN_OR_RETURN(loaded.file, gguf::File::Open(options.path));
  KVASIR_ASSIGN_OR_RETURN(loaded.tokenizer, tokenizer::Tokenizer::Create(*loaded.file));
  if (loaded.file->Has("tokenizer.chat_template")) {
    KVASIR_ASSIGN_OR_RETURN(loaded.chat_template,
                            tokenizer::ChatTemplate::Create(*loaded.file, loaded.tokenizer.get()));
  }
  loaded.threads =
      std::make_unique<base::ThreadPool>(options.threads > 0 ? options.threads : UsableCores());
  const kernels::CpuPath path = options.cpu_path.value_or(kernels::AvailableCpuPaths().back());
  KVASIR_ASSIGN_OR_RETURN(loaded.backend,
                          kernels::MakeCpuBackend(path, options.precision, *loaded.threads));
  KVASIR_ASSIGN_OR_RETURN(
      loaded.model, model::Model::Load(*loaded.file, *loaded.backend, options.model, progress));
  return loaded;
}

kv::ModelId LoadedModel::MakeModelId() const {
  return kv::MakeModelId(model::WeightsDigest(*file), tokenizer->digest(), model->geometry());
}

}  // namespace kvasir::runtime

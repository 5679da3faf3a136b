// LoadedModel: everything made from one GGUF file, opened in the right order and owned together:
// the file, the threads, the backend, the weights, the tokenizer, the chat template, and the
// identity that stored states are compared with.
//
// Threads: immutable after Load, but for what Model says of Forward.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/file.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/cpu_backend.h"
#include "engine/kv/identity.h"
#include "engine/model/model.h"
#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::runtime {

struct LoadOptions {
  std::string path;                          // of the GGUF file
  int threads = 0;                           // 0: one per core this process may use
  std::optional<kernels::CpuPath> cpu_path;  // nothing: the strongest this CPU has
  kernels::Precision precision = kernels::Precision::kFast;
  model::Model::Options model;
};

struct LoadedModel {
  std::unique_ptr<gguf::File> file;
  std::unique_ptr<base::ThreadPool> threads;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  // Nothing when the file has no template; an unknown template is an error of Load.
  std::optional<tokenizer::ChatTemplate> chat_template;

  // `progress` (may be null) is called with the share of the weights loaded, in [0, 1].
  // Errors: those of gguf::File::Open, Model::Load, Tokenizer::Create, ChatTemplate::Create and
  // MakeCpuBackend.
  static base::StatusOr<LoadedModel> Load(const LoadOptions& options,
                                          const std::function<void(double)>& progress);

  // Reads the whole file once (about half a second per gigabyte).
  kv::ModelId MakeModelId() const;
};

}  // namespace kvasir::runtime

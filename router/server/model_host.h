// ModelHost: the model that a server serves, ready for chat: weights, engine, prompts, the state
// builder, and the canonical base mounted in front of every session.
//
// Threads: immutable after Load; the engine and the builder say for themselves.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/loaded_model.h"
#include "engine/runtime/prompt.h"
#include "engine/runtime/state_builder.h"
#include "router/server/options.h"

namespace kvasir::server {

class ModelHost {
 public:
  // Loads options.model, starts the engine and computes the base. `id_cache`: a file that keeps the
  // model_id of the model file by path, size and time of change, so that the file is read whole the
  // first time only. `progress` (may be null): share of the weights loaded, in [0, 1].
  // Errors: those of LoadedModel::Load, Engine::Create and Prompt::Create; FailedPrecondition (the
  // file has no chat template).
  static base::StatusOr<std::unique_ptr<ModelHost>> Load(
      const Options& options, const std::string& id_cache, const base::Clock* clock,
      const std::function<void(double)>& progress);
  // Shuts the engine down.
  ~ModelHost();

  runtime::Engine& engine() { return *engine_; }
  const runtime::Prompt& prompt() const { return *prompt_; }
  runtime::RuntimeStateBuilder& builder() { return *builder_; }
  const runtime::LoadedModel& loaded() const { return loaded_; }
  // The base at position 0: what every sequence has mounted first.
  const runtime::SequenceMount& base() const { return base_; }
  int64_t base_tokens() const { return base_.end(); }
  // Last part of the model's resource name: the file's name without its ending.
  const std::string& name() const { return name_; }

 private:
  ModelHost() = default;
  base::Status MountBase();

  std::string name_;
  runtime::LoadedModel loaded_;
  std::optional<runtime::Prompt> prompt_;
  std::unique_ptr<runtime::Engine> engine_;
  std::unique_ptr<runtime::RuntimeStateBuilder> builder_;
  runtime::SequenceMount base_;
};

// The model_id of the model file, from `id_cache` when the file did not change since, else computed
// and written there.
kv::ModelId CachedModelId(const std::string& model_path, const std::string& id_cache,
                          const std::function<kv::ModelId()>& compute);

}  // namespace kvasir::server

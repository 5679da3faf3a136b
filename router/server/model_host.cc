#include "router/server/model_host.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "engine/base/check.h"
#include "engine/kv/codec.h"
#include "router/server/awaited.h"
#include "router/server/resource_names.h"

namespace kvasir::server {
namespace {

// The numeric definition of the CPU backend (kernels/cpu/cpu_backend.h): the same bits on every
// instruction set, so states are made alike on all of them.
constexpr std::string_view kCpuDefinition = "cpu/1";
constexpr int64_t kStepRows = 256;
constexpr int64_t kBackgroundRequestsMax = 1024;  // builds and closings of replies that wait

std::string NameOf(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  for (char& c : name) {
    if (!CheckId(std::string("m") + c, "").ok()) c = '-';
  }
  if (name.empty() || !CheckId(name.substr(0, 1), "").ok()) name = "m" + name;
  return name.substr(0, kIdBytesMax);
}

runtime::LoadOptions LoadOptionsOf(const Options& options) {
  runtime::LoadOptions load;
  load.path = options.model;
  load.threads = static_cast<int>(options.threads);
  load.model.rows_max = std::max(kStepRows, options.running_turns_max);
  load.model.logits_rows_max = std::max<int64_t>(64, options.running_turns_max);
  load.model.positions_max = options.context_tokens;
  return load;
}

runtime::Engine::Options EngineOptionsOf(const Options& options) {
  runtime::Engine::Options engine;
  engine.kv_bytes = static_cast<size_t>(options.kv_bytes_max);
  engine.step_rows_max = std::max(kStepRows, options.running_turns_max);
  engine.requests_running_max = options.running_turns_max;
  engine.requests_queued_max =
      options.running_turns_max + options.queued_turns_max + kBackgroundRequestsMax;
  engine.requests_queued_key_max = engine.requests_queued_max;
  engine.operations_max = engine.requests_queued_max;
  return engine;
}

kv::BuildId BuildIdOf(const kernels::Backend& backend) {
  const std::string_view kv = backend.kv_type() == kernels::KvType::kF16 ? "f16" : "f32";
  return kv::MakeBuildId(kv::kCodecVersion, kCpuDefinition, kv, "none");
}

}  // namespace

base::StatusOr<std::unique_ptr<ModelHost>> ModelHost::Load(
    const Options& options, const std::string& id_cache, const base::Clock* clock,
    const std::function<void(double)>& progress) {
  std::unique_ptr<ModelHost> host(new ModelHost);
  host->name_ = NameOf(options.model);
  KVASIR_ASSIGN_OR_RETURN(host->loaded_,
                          runtime::LoadedModel::Load(LoadOptionsOf(options), progress));
  const runtime::LoadedModel& loaded = host->loaded_;
  if (!loaded.chat_template) {
    return base::FailedPrecondition("{} has no chat template: it is no model to chat with",
                                    options.model);
  }
  KVASIR_ASSIGN_OR_RETURN(host->prompt_,
                          runtime::Prompt::Create(loaded.tokenizer.get(), &*loaded.chat_template));
  const kv::ModelId model_id =
      CachedModelId(options.model, id_cache, [&] { return loaded.MakeModelId(); });
  KVASIR_ASSIGN_OR_RETURN(host->engine_,
                          runtime::Engine::Create({.model = loaded.model.get(),
                                                   .tokenizer = loaded.tokenizer.get(),
                                                   .clock = clock,
                                                   .model_id = model_id,
                                                   .build_id = BuildIdOf(*loaded.backend)},
                                                  EngineOptionsOf(options)));
  host->engine_->Start();
  host->builder_ = std::make_unique<runtime::RuntimeStateBuilder>(*host->engine_, *host->prompt_);
  KVASIR_RETURN_IF_ERROR(host->MountBase());
  return host;
}

base::Status ModelHost::MountBase() {
  const std::atomic<bool> cancelled = false;
  KVASIR_ASSIGN_OR_RETURN(const auto segment, builder_->Base(cancelled));
  using Mountable = base::StatusOr<std::shared_ptr<const runtime::MountableSegment>>;
  auto mountable = Await<Mountable>(
      [&](const auto& done) { engine_->MakeMountable(segment->ContentDigest(), segment, done); });
  KVASIR_RETURN_IF_ERROR(mountable.status());
  base_ = {.segment = *std::move(mountable), .begin = 0};
  return base::OkStatus();
}

ModelHost::~ModelHost() {
  if (engine_ != nullptr) engine_->Shutdown(0);
  base_ = {};
}

}  // namespace kvasir::server

#include "engine/model/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/check.h"
#include "engine/model/weights.h"

namespace kvasir::model {
namespace {

kv::Geometry MakeGeometry(const Config& config) {
  kv::Geometry geometry;
  geometry.ropes = {{.interleaved = config.rope_interleaved,
                     .base = config.rope_base,
                     .scale = config.rope_scale,
                     .factors = config.rope_factors}};
  geometry.layers.assign(static_cast<size_t>(config.n_layer),
                         {.kind = kv::StreamKind::kFull,
                          .kv_heads = static_cast<int32_t>(config.n_kv_heads),
                          .k_width = static_cast<int32_t>(config.key_length),
                          .v_width = static_cast<int32_t>(config.value_length),
                          .rotated = static_cast<int32_t>(config.n_rot),
                          .rope = 0,
                          .window = 0});
  return geometry;
}

kernels::KvLayout MakeLayout(const kv::Geometry& geometry, kernels::KvType type) {
  std::vector<kernels::LayerStreams> layers;
  for (const kv::Stream& stream : geometry.layers) {
    layers.push_back(
        {.kv_heads = stream.kv_heads, .k_width = stream.k_width, .v_width = stream.v_width});
  }
  return kernels::KvLayout(type, layers);
}

kernels::RopeOptions MakeRope(const Config& config, int64_t positions_max) {
  return {.rotated = static_cast<int>(config.n_rot),
          .interleaved = config.rope_interleaved,
          .base = config.rope_base,
          .scale = config.rope_scale,
          .factors = config.rope_factors,
          .positions_max = positions_max};
}

}  // namespace

struct Model::State {
  State(const Config& model_config, kernels::Backend& model_backend, const Options& model_options)
      : config(model_config),
        options(model_options),
        backend(model_backend),
        geometry(MakeGeometry(config)),
        layout(MakeLayout(geometry, backend.kv_type())),
        rope(MakeRope(config, options.positions_max)),
        memory(StepMemory::Make(config, backend, options.rows_max, options.logits_rows_max)) {}

  Config config;
  Options options;
  kernels::Backend& backend;
  kv::Geometry geometry;
  kernels::KvLayout layout;
  kernels::RopeTable rope;
  StepMemory memory;
  Weights weights;
};

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

base::StatusOr<std::unique_ptr<Model>> Model::Load(const gguf::File& file,
                                                   kernels::Backend& backend,
                                                   const Options& options,
                                                   const std::function<void(double)>& progress) {
  KVASIR_CHECK(options.rows_max > 0 && options.logits_rows_max > 0 && options.positions_max >= 0);
  KVASIR_ASSIGN_OR_RETURN(const Config config, Config::FromFile(file));
  Options resolved = options;
  if (resolved.positions_max == 0) resolved.positions_max = config.n_ctx_train;
  auto state = std::make_unique<State>(config, backend, resolved);
  KVASIR_ASSIGN_OR_RETURN(state->weights, Weights::Load(file, config, backend, progress));
  return std::unique_ptr<Model>(new Model(std::move(state)));
}

const Config& Model::config() const { return state_->config; }
const Model::Options& Model::options() const { return state_->options; }
const kv::Geometry& Model::geometry() const { return state_->geometry; }
const kernels::KvLayout& Model::layout() const { return state_->layout; }
const kernels::RopeTable& Model::rope() const { return state_->rope; }
kernels::Backend& Model::backend() const { return state_->backend; }

kv::ElementType Model::element_type() const {
  return state_->layout.type() == kernels::KvType::kF16 ? kv::ElementType::kF16
                                                        : kv::ElementType::kF32;
}

size_t Model::weight_bytes_per_token() const {
  size_t bytes = state_->weights.output->bytes();
  for (const LayerWeights& layer : state_->weights.layers) bytes += layer.bytes();
  return bytes;
}

namespace {

// The rows of a step as the backend wants them. Owns what the views point to.
struct Plan {
  std::vector<int32_t> tokens;       // of all rows
  std::vector<int32_t> logits_rows;  // rows that need logits
  std::vector<std::vector<kernels::Span>> spans;
  std::vector<kernels::SequenceRows> sequences;
};

base::Status AddSequence(const SequenceStep& step, int64_t n_vocab, Plan& plan) {
  const int64_t rows = static_cast<int64_t>(step.tokens.size());
  const int64_t first_row = static_cast<int64_t>(plan.tokens.size());
  for (const int32_t token : step.tokens) {
    if (token < 0 || token >= n_vocab) {
      return base::InvalidArgument("token id {} is not in the vocabulary of {}", token, n_vocab);
    }
  }
  KVASIR_CHECK(rows > 0 && step.logits_rows >= 0 && step.logits_rows <= rows);
  KVASIR_CHECK(step.tail->PagesNeeded(step.tail->end() + rows) == 0);
  plan.tokens.insert(plan.tokens.end(), step.tokens.begin(), step.tokens.end());
  for (int64_t i = rows - step.logits_rows; i < rows; ++i) {
    plan.logits_rows.push_back(static_cast<int32_t>(first_row + i));
  }
  auto& spans = plan.spans.emplace_back();
  for (const Mount& mount : step.mounts) {
    KVASIR_CHECK(mount.end() <= step.tail->first_position());
    spans.push_back(mount.span());
  }
  spans.push_back(step.tail->span(step.tail->end() + rows));
  plan.sequences.push_back({.first_row = first_row,
                            .rows = rows,
                            .first_position = step.tail->end(),
                            .spans = spans,
                            .tail_pages = step.tail->page_pointers(),
                            .tail_page_first = step.tail->page_first()});
  return base::OkStatus();
}

base::StatusOr<Plan> MakePlan(std::span<const SequenceStep> steps, const Config& config,
                              const Model::Options& options) {
  Plan plan;
  for (const SequenceStep& step : steps)
    KVASIR_RETURN_IF_ERROR(AddSequence(step, config.n_vocab, plan));
  KVASIR_CHECK(!plan.tokens.empty() &&
               static_cast<int64_t>(plan.tokens.size()) <= options.rows_max);
  KVASIR_CHECK(static_cast<int64_t>(plan.logits_rows.size()) <= options.logits_rows_max);
  for (const kernels::SequenceRows& rows : plan.sequences) {
    KVASIR_CHECK(rows.first_position + rows.rows <= options.positions_max);
  }
  return plan;
}

const float* FloatsOrNull(const BufferPtr& buffer) { return buffer ? buffer->floats() : nullptr; }

// One transformer block over all rows of the step: x += attention(norm(x)); x += ffn(norm(x)).
void RunLayer(int layer, const LayerWeights& w, const Config& config,
              const kernels::KvLayout& layout, const kernels::RopeTable& rope, const Plan& plan,
              std::span<const int32_t> all_rows, kernels::Backend& backend, StepMemory& m,
              ForwardObserver* queries) {
  const int64_t rows = static_cast<int64_t>(plan.tokens.size());
  const int64_t q_columns = config.n_head * config.key_length;
  const int64_t k_columns = config.n_kv_heads * config.key_length;
  const int64_t v_columns = config.n_kv_heads * config.value_length;
  const float eps = static_cast<float>(config.rms_eps);

  backend.Norm({.x = m.x->floats(),
                .rows = all_rows,
                .columns = config.n_embd,
                .weight = w.attn_norm->floats(),
                .eps = eps},
               *m.input);
  const kernels::LinearTask qkv[] = {{.weight = w.q.get(),
                                      .bias = FloatsOrNull(w.q_bias),
                                      .out = m.q->floats(),
                                      .out_stride = q_columns},
                                     {.weight = w.k.get(),
                                      .bias = FloatsOrNull(w.k_bias),
                                      .out = m.k->floats(),
                                      .out_stride = k_columns},
                                     {.weight = w.v.get(),
                                      .bias = FloatsOrNull(w.v_bias),
                                      .out = m.v->floats(),
                                      .out_stride = v_columns}};
  backend.Linear(*m.input, qkv);
  backend.Append({.layout = &layout,
                  .layer = layer,
                  .rope = &rope,
                  .sequences = plan.sequences,
                  .k = m.k->floats(),
                  .v = m.v->floats(),
                  .k_stride = k_columns,
                  .v_stride = v_columns});
  backend.Attend(
      {.layout = &layout,
       .layer = layer,
       .rope = &rope,
       .sequences = plan.sequences,
       .q = m.q->floats(),
       .q_stride = q_columns,
       .q_heads = static_cast<int>(config.n_head),
       .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.key_length))),
       .window = 0,
       .out = m.attention->floats(),
       .log_sum_exp = queries != nullptr ? m.log_sum_exp->floats() : nullptr});
  if (queries != nullptr) {
    queries->OnQueries(layer, m.q->floats(), m.log_sum_exp->floats(), rows);
  }
  backend.Prepare(m.attention->floats(), rows, config.n_head * config.value_length, *m.input);
  const kernels::LinearTask output[] = {{.weight = w.attn_output.get(),
                                         .out = m.x->floats(),
                                         .out_stride = config.n_embd,
                                         .add = true}};
  backend.Linear(*m.input, output);

  backend.Norm({.x = m.x->floats(),
                .rows = all_rows,
                .columns = config.n_embd,
                .weight = w.ffn_norm->floats(),
                .eps = eps},
               *m.input);
  const kernels::LinearTask gate_up[] = {
      {.weight = w.gate.get(), .out = m.gate->floats(), .out_stride = config.n_ff},
      {.weight = w.up.get(), .out = m.up->floats(), .out_stride = config.n_ff}};
  backend.Linear(*m.input, gate_up);
  backend.GatedActivation(kernels::Gate::kSilu, m.gate->floats(), m.up->floats(), rows, config.n_ff,
                          *m.input);
  const kernels::LinearTask down[] = {
      {.weight = w.down.get(), .out = m.x->floats(), .out_stride = config.n_embd, .add = true}};
  backend.Linear(*m.input, down);
}

}  // namespace

base::Status Model::Forward(std::span<const SequenceStep> steps, std::span<float> logits,
                            const std::function<bool()>& keep_going, ForwardObserver* observer) {
  State& s = *state_;
  KVASIR_ASSIGN_OR_RETURN(const Plan plan, MakePlan(steps, s.config, s.options));
  const int64_t rows = static_cast<int64_t>(plan.tokens.size());
  const int64_t logits_rows = static_cast<int64_t>(plan.logits_rows.size());
  KVASIR_CHECK(static_cast<int64_t>(logits.size()) == logits_rows * s.config.n_vocab);
  std::vector<int32_t> all_rows(static_cast<size_t>(rows));
  std::iota(all_rows.begin(), all_rows.end(), 0);

  const bool wants_queries = observer != nullptr && observer->WantsQueries();
  s.backend.Embed(*s.weights.embedding, {.tokens = plan.tokens, .out = s.memory.x->floats()});
  for (int layer = 0; layer < s.config.n_layer; ++layer) {
    if (keep_going && !keep_going()) return base::Cancelled("step given up before layer {}", layer);
    if (observer != nullptr) observer->OnResidual(layer, s.memory.x->floats(), rows);
    RunLayer(layer, s.weights.layers[layer], s.config, s.layout, s.rope, plan, all_rows, s.backend,
             s.memory, wants_queries ? observer : nullptr);
  }
  if (observer != nullptr)
    observer->OnResidual(static_cast<int>(s.config.n_layer), s.memory.x->floats(), rows);

  if (logits_rows > 0) {
    s.backend.Norm({.x = s.memory.x->floats(),
                    .rows = plan.logits_rows,
                    .columns = s.config.n_embd,
                    .weight = s.weights.output_norm->floats(),
                    .eps = static_cast<float>(s.config.rms_eps)},
                   *s.memory.input);
    const kernels::LinearTask output[] = {{.weight = s.weights.output.get(),
                                           .out = s.memory.logits->floats(),
                                           .out_stride = s.config.n_vocab}};
    s.backend.Linear(*s.memory.input, output);
    s.backend.Download(s.memory.logits->data(), logits.size_bytes(),
                       reinterpret_cast<std::byte*>(logits.data()));
  }
  for (const SequenceStep& step : steps) step.tail->Advance(step.tokens);
  return base::OkStatus();
}

base::Digest WeightsDigest(const gguf::File& file) {
  base::Hasher hasher;
  for (const gguf::Tensor& tensor : file.tensors()) {
    hasher.AddText(tensor.name);
    hasher.AddInt(static_cast<int64_t>(tensor.type));
    hasher.AddInt(static_cast<int64_t>(tensor.dims.size()));
    for (const int64_t dim : tensor.dims) hasher.AddInt(dim);
    hasher.Add(tensor.data);
  }
  return hasher.Finish();
}

}  // namespace kvasir::model

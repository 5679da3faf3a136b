#include "tests/router/server/identity/assembly.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/base/check.h"
#include "engine/base/rng.h"
#include "router/server/awaited.h"

namespace kvasir::server {
namespace {

constexpr char kDate[] = "2026-12-01";
constexpr char kFact[] = "My cat is called Tofu.";

void Must(const base::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Must(base::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

}  // namespace

base::StatusOr<std::shared_ptr<const kv::KvSegment>> NotingBuilder::Build(
    const kv::BuilderSession& session, const std::atomic<bool>& cancelled) {
  KVASIR_ASSIGN_OR_RETURN(auto built, builder_.Build(session, cancelled));
  last_ = built->ContentDigest();
  return built;
}

service::UserRef Ana() { return {.user = "ana"}; }

std::vector<int32_t> RandomIds(uint64_t seed, int64_t count, int64_t n_vocab) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(base::UniformAt(seed, 0, static_cast<uint64_t>(i)) *
                                       static_cast<double>(n_vocab)));
  }
  return ids;
}

Assembly::Assembly(const std::string& model, const std::string& data) {
  options_.model = model;
  options_.data = data;
  options_.threads = 2;
  options_.context_tokens = 2048;
  options_.running_turns_max = kRowsMax;  // bounds the rows of a step that have logits, too
  options_.mount_slack_tokens = 0;
  host_ = Must(ModelHost::Load(options_, data + "/model_id.json", &clock_, nullptr));
  sessions_.SetEngine(&host_->engine());
  builder_ = std::make_unique<NotingBuilder>(host_->builder());
  service::TierOptions tier;
  tier.dir = data + "/store";
  tier_ = Must(service::MemoryTier::Open(tier, &clock_, &entropy_, builder_.get()));
  tier_->SetDeletionListener(&sessions_);
  pool_ = std::make_unique<WorkPool>(2, 64);
  turns_ = std::make_unique<ChatTurns>(ChatTurns::Dependencies{.options = &options_,
                                                               .host = host_.get(),
                                                               .tier = tier_.get(),
                                                               .sessions = &sessions_,
                                                               .pool = pool_.get(),
                                                               .clock = &clock_});
}

Assembly::~Assembly() {
  host_->engine().Shutdown(0);
  pool_->Stop();
}

base::Digest Assembly::StoreMemory(int64_t tokens) {
  const runtime::Prompt& prompt = host_->prompt();
  service::SessionRecord wanted;
  wanted.name = kSession;
  Must(tier_->sessions().Create(Ana(), wanted).status());
  service::TurnStart start;
  start.turn.user_text = kFact;
  start.turn.mode = service::MemoryMode::kReadWrite;
  start.turn.prompt_ids = prompt.FirstTurn(kDate, "", kFact);
  start.offset = host_->base_tokens();
  start.date = kDate;
  service::TurnRecord turn = Must(tier_->sessions().BeginTurn(Ana(), kSession, start));
  // The last id is text, so that what closes the reply has the same length for every model.
  const std::vector<int32_t> last = prompt.TextTokens("a");
  const size_t around = turn.prompt_ids.size() + prompt.Reply(last).size();
  KVASIR_CHECK(last.size() == 1 && tokens > static_cast<int64_t>(around));
  turn.reply_ids = RandomIds(7, tokens - static_cast<int64_t>(around), n_vocab());
  turn.reply_ids.push_back(last[0]);
  turn.reply_text = "(random)";
  turn.finish_reason = "STOP";
  Must(tier_->sessions().FinishTurn(Ana(), turn));
  Must(tier_->sessions().Close(Ana(), kSession).status());
  KVASIR_CHECK(tier_->RunOneJob());
  return builder_->last();
}

service::MemoryRecord Assembly::Memory() {
  const service::SessionRecord session = Must(tier_->sessions().Get(Ana(), kSession));
  KVASIR_CHECK(session.memory.has_value());
  return Must(tier_->memories().Get(Ana(), session.memory->Hex()));
}

std::shared_ptr<LiveTurn> Assembly::Begin(const std::string& message, int64_t max_output_tokens) {
  if (absl::IsNotFound(tier_->sessions().Get(Ana(), kSession).status())) {
    service::SessionRecord wanted;
    wanted.name = kSession;
    Must(tier_->sessions().Create(Ana(), wanted).status());
  }
  ChatCall call;
  call.user = Ana();
  call.session = kSession;
  call.message = message;
  call.max_output_tokens = max_output_tokens;
  call.sampling.temperature = 0;
  call.logprobs = true;
  return Must(turns_->Start(call));
}

service::TurnRecord Assembly::Say(const std::string& message, int64_t max_output_tokens) {
  const auto turn = Begin(message, max_output_tokens);
  Await<bool>([&](const auto& done) { turn->OnEnd([done] { done(true); }); });
  const int64_t events = turn->log.size();
  Must(turn->log.EndAfter(events).value_or(base::OkStatus()));
  Await<bool>([&](const auto& done) {
    KVASIR_CHECK(sessions_.WhenStored(Ana(), kSession, [done] { done(true); }));
  });
  return Must(tier_->sessions().GetTurn(Ana(), kSession, turn->number()));
}

SessionLayout Assembly::Layout() {
  const service::SessionRecord session = Must(tier_->sessions().Get(Ana(), kSession));
  return MakeLayout(host_->prompt(), session.offset,
                    Must(tier_->sessions().History(Ana(), kSession)));
}

runtime::SequenceMount Assembly::Mount(const std::shared_ptr<const kv::KvSegment>& segment,
                                       int64_t begin) {
  using Mountable = base::StatusOr<std::shared_ptr<const runtime::MountableSegment>>;
  return {.segment = Must(Await<Mountable>([&](const auto& done) {
            host_->engine().MakeMountable(segment->ContentDigest(), segment, done);
          })),
          .begin = begin};
}

std::vector<float> Assembly::Run(model::Tail& tail, std::span<const int32_t> tokens, int64_t rows,
                                 const std::vector<model::Mount>& mounts) {
  host_->engine().Shutdown(0);  // the model is free now
  std::vector<float> logits(static_cast<size_t>(rows * n_vocab()));
  Must(tail.Reserve(tail.end() + std::ssize(tokens)));
  while (!tokens.empty()) {
    const int64_t silent = std::ssize(tokens) - rows;
    const int64_t count = silent > 0 ? std::min(silent, kRowsMax) : rows;
    const model::SequenceStep step = {.tokens = tokens.first(static_cast<size_t>(count)),
                                      .tail = &tail,
                                      .mounts = mounts,
                                      .logits_rows = silent > 0 ? 0 : rows};
    Must(host_->loaded().model->Forward(
        {&step, 1}, silent > 0 ? std::span<float>() : std::span<float>(logits)));
    tokens = tokens.subspan(static_cast<size_t>(count));
  }
  return logits;
}

}  // namespace kvasir::server

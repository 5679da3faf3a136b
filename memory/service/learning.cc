#include "memory/service/learning.h"

#include <algorithm>
#include <numeric>

namespace kvasir::service {

bool Learnable(const SessionRecord& session, const TurnRecord& turn) {
  return session.mode == MemoryMode::kReadWrite && turn.mode == MemoryMode::kReadWrite &&
         turn.state == TurnRecord::State::kDone;
}

bool Promotable(const SessionRecord& session, int64_t base_tokens) {
  return session.mode == MemoryMode::kReadWrite && !session.tainted && !session.incognito &&
         session.system_prompt.empty() && session.mounts.empty() && session.offset == base_tokens;
}

base::StatusOr<std::vector<TurnRecord>> LearnableTurns(const store::Store& store,
                                                       const store::UserKey& user,
                                                       const SessionRecord& session) {
  KVASIR_ASSIGN_OR_RETURN(std::vector<TurnRecord> turns,
                          ReadTurns(store, user, session.id, 1, session.next_turn - 1));
  std::erase_if(turns, [&](const TurnRecord& turn) { return !Learnable(session, turn); });
  return turns;
}

std::vector<int64_t> Numbers(const std::vector<TurnRecord>& turns) {
  std::vector<int64_t> numbers;
  for (const TurnRecord& turn : turns) numbers.push_back(turn.number);
  return numbers;
}

std::string TitleOf(std::string_view user_text) {
  constexpr size_t kBytesMax = 60;
  std::string title;
  for (const char c : user_text) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && (title.empty() || title.back() == ' ')) continue;
    title += space ? ' ' : c;
    if (title.size() > kBytesMax) break;
  }
  if (title.size() > kBytesMax) {
    size_t end = title.rfind(' ', kBytesMax);
    if (end == std::string::npos || end == 0) {
      for (end = kBytesMax; end > 0 && (static_cast<uint8_t>(title[end]) & 0xc0) == 0x80;) --end;
    }
    title.resize(end);
  }
  if (!title.empty() && title.back() == ' ') title.pop_back();
  return title;
}

base::StatusOr<MemoryRecord> MemoryOf(Core& core, UserState& user, const SessionRecord& session,
                                      std::string_view first_message) {
  if (session.memory) {
    if (auto memory = user.FindMemory(*session.memory)) return *std::move(memory);
  }
  {
    absl::MutexLock lock(&user.mutex);
    const int64_t wanted = std::ssize(user.memories) + 1;
    if (wanted > core.options.memories_per_user_max) {
      return MemoryQuotaExceeded("memories", wanted, core.options.memories_per_user_max);
    }
  }
  MemoryRecord memory;
  memory.id = store::NewRecordId(*core.entropy);
  memory.name = memory.id.Hex();
  memory.session = session.id;
  memory.state = MemoryRecord::State::kRebuilding;
  memory.title = TitleOf(first_message);
  memory.create_us = memory.update_us = core.now_us();
  return memory;
}

bool IsCurrent(const Core& core, const MemoryRecord& memory) {
  return memory.model_id_hex == core.builder->model_id().digest.Hex() &&
         memory.build_id == core.builder->build_id().text;
}

bool IsComplete(const Core& core, const MemoryRecord& memory, const std::vector<int64_t>& turns) {
  return memory.state == MemoryRecord::State::kExact && !memory.parts.empty() &&
         memory.source_turns == turns && IsCurrent(core, memory);
}

void IndexUpdate::AddDate(const Core& core, const SessionRecord& session) {
  turns[index::kDateLine] = core.analyzer->Analyze("Conversation on " + session.date);
}

void IndexUpdate::AddTurn(const Core& core, const TurnRecord& turn) {
  turns[turn.number] = core.analyzer->Analyze(turn.user_text + "\n" + turn.reply_text);
}

void IndexUpdate::Put(const store::UserKey& user, store::Batch& batch) const {
  for (const auto& [turn, terms] : turns) {
    batch.Put(PostingsKey(user, memory, turn), index::EncodeTermCounts(terms));
  }
}

void IndexUpdate::Apply(UserState& user) const {
  absl::MutexLock lock(&user.mutex);
  for (const auto& [turn, terms] : turns) user.index.SetTurn(memory.bytes, turn, terms);
}

namespace {

int64_t EstimatedTokens(const std::vector<TurnRecord>& turns) {
  return std::accumulate(turns.begin(), turns.end(), int64_t{0},
                         [](int64_t sum, const TurnRecord& turn) {
                           return sum + std::ssize(turn.prompt_ids) + std::ssize(turn.reply_ids);
                         });
}

}  // namespace

base::StatusOr<MemoryPlan> PlanMemory(Core& core, UserState& user, SessionRecord& session) {
  MemoryPlan plan;
  KVASIR_ASSIGN_OR_RETURN(const std::vector<TurnRecord> turns,
                          LearnableTurns(*core.store, user.key, session));
  if (turns.empty()) return plan;
  KVASIR_ASSIGN_OR_RETURN(MemoryRecord memory,
                          MemoryOf(core, user, session, turns.front().user_text));
  if (IsComplete(core, memory, Numbers(turns))) return plan;
  KVASIR_RETURN_IF_ERROR(core.CheckRoomForJob(user.key, session.id));
  const bool usable =
      memory.state == MemoryRecord::State::kExact || memory.state == MemoryRecord::State::kStale;
  plan.index.memory = memory.id;
  plan.index.AddDate(core, session);
  for (const TurnRecord& turn : turns) plan.index.AddTurn(core, turn);
  memory.state = usable ? MemoryRecord::State::kStale : MemoryRecord::State::kRebuilding;
  memory.source_turns = Numbers(turns);
  if (!usable) memory.logical_tokens = EstimatedTokens(turns);
  memory.update_us = core.now_us();
  session.memory = memory.id;
  plan.memory = std::move(memory);
  plan.job = JobRecord{.id = session.id,
                       .type = JobRecord::Type::kBuildMemory,
                       .user = user.ref,
                       .due_us = core.now_us(),
                       .create_us = core.now_us()};
  return plan;
}

}  // namespace kvasir::service

#include "router/server/settle.h"

#include <algorithm>
#include <utility>

#include "router/server/awaited.h"

namespace kvasir::server {
namespace {

// More than closes a reply: the rest of a prompt that was cancelled waits for the next turn.
constexpr int64_t kClosingTokensMax = 64;

class ClosingSink final : public runtime::Sink {
 public:
  explicit ClosingSink(std::function<void(base::Status)> done) : done_(std::move(done)) {}
  base::Status OnToken(const runtime::OutputToken&) override { return base::OkStatus(); }
  void OnFinish(const runtime::Finish& finish) override { done_(finish.status); }

 private:
  std::function<void(base::Status)> done_;
};

}  // namespace

std::vector<PartRange> PartRanges(const SessionLayout& layout, int64_t begin, int64_t end) {
  std::vector<PartRange> parts;
  for (int64_t at = begin; at < end; at += kPartTokens) {
    PartRange part{.begin = at, .end = std::min(end, at + kPartTokens), .turns = {}};
    for (const TurnSpan& span : layout.turns) {
      const int64_t first = std::max(span.begin, part.begin), last = std::min(span.end, part.end);
      if (first >= last) continue;
      part.turns.push_back({span.turn, static_cast<int32_t>(first - part.begin),
                            static_cast<int32_t>(last - part.begin)});
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

base::Status Settle::CloseReply(const service::UserRef& user, const SessionLayout& layout,
                                const std::shared_ptr<runtime::Sequence>& sequence) {
  const int64_t missing = layout.end() - sequence->view().end;
  if (missing <= 0 || missing > kClosingTokensMax) return base::OkStatus();
  runtime::GenerateRequest request;
  request.sequence = sequence;
  request.prompt.assign(layout.ids.end() - missing, layout.ids.end());
  request.fairness_key = user.tenant + "/" + user.user;
  return Await<base::Status>([&](const std::function<void(base::Status)>& done) {
    request.sink = std::make_shared<ClosingSink>(done);
    const auto id = host_.engine().Submit(std::move(request));
    if (!id.ok()) done(id.status());
  });
}

base::Status Settle::Run(const service::UserRef& user, const std::string& session,
                         const SessionLayout& layout, bool save, SessionState& state) {
  if (state.sequence == nullptr || !state.sequence->resident()) return base::OkStatus();
  KVASIR_RETURN_IF_ERROR(CloseReply(user, layout, state.sequence));
  if (!save || state.saved_end < 0) return base::OkStatus();
  const int64_t tail_end = state.sequence->view().end;
  int64_t turn = 0, end = layout.offset;  // up to the last turn that the tail holds whole
  for (const TurnSpan& span : layout.turns) {
    if (span.end > tail_end) break;
    turn = span.turn;
    end = span.end;
  }
  if (end <= state.saved_end) return base::OkStatus();
  const bool replaces =
      state.last_part_begin >= 0 && state.saved_end - state.last_part_begin < kPartTokens;
  std::vector<std::shared_ptr<const kv::KvSegment>> parts;
  const auto ranges = PartRanges(layout, replaces ? state.last_part_begin : state.saved_end, end);
  for (const PartRange& range : ranges) {
    using Segment = base::StatusOr<std::shared_ptr<const kv::KvSegment>>;
    auto segment = Await<Segment>([&](const auto& done) {
      host_.engine().Cut(state.sequence, range.begin, range.end, range.turns, done);
    });
    KVASIR_RETURN_IF_ERROR(segment.status());
    parts.push_back(*std::move(segment));
  }
  KVASIR_RETURN_IF_ERROR(tier_.sessions().SaveState(user, session, turn, parts, replaces));
  state.saved_end = end;
  state.last_part_begin = ranges.back().begin;
  return base::OkStatus();
}

}  // namespace kvasir::server

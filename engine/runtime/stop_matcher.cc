#include "engine/runtime/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace kvasir::runtime {
namespace {

base::Status Invalid(base::Status status) {
  return base::WithField(base::WithReason(std::move(status), "INVALID_FIELD"), "stop");
}

// border[n]: length of the longest proper prefix of text[0, n) that is its suffix too.
std::vector<int32_t> Borders(std::string_view text) {
  std::vector<int32_t> border(text.size() + 1, 0);
  int32_t length = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[static_cast<size_t>(length)]) {
      length = border[static_cast<size_t>(length)];
    }
    if (text[i] == text[static_cast<size_t>(length)]) ++length;
    border[i + 1] = length;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher() : patterns_(std::make_shared<std::vector<Pattern>>()) {}

base::StatusOr<StopMatcher> StopMatcher::Create(std::vector<std::string> stops) {
  if (stops.size() > kStopStringsMax) {
    return Invalid(base::InvalidArgument("stop has {} strings, at most {} are allowed",
                                         stops.size(), kStopStringsMax));
  }
  auto patterns = std::make_shared<std::vector<Pattern>>();
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty() || stops[i].size() > kStopBytesMax) {
      return Invalid(base::InvalidArgument("stop[{}] has {} bytes, 1 to {} are allowed", i,
                                           stops[i].size(), kStopBytesMax));
    }
    std::vector<int32_t> border = Borders(stops[i]);
    patterns->push_back({std::move(stops[i]), std::move(border)});
  }
  StopMatcher matcher;
  matcher.state_.matched.assign(patterns->size(), 0);
  matcher.patterns_ = std::move(patterns);
  return matcher;
}

std::string StopMatcher::Push(std::string_view bytes) {
  history_.push_back(state_);
  if (history_.size() > kStopRollbackMax) history_.pop_front();
  std::string certain;
  for (const char byte : bytes) {
    if (state_.stopped) break;
    PushByte(byte, certain);
  }
  return certain;
}

void StopMatcher::PushByte(char byte, std::string& certain) {
  state_.held += byte;
  size_t stop_bytes = 0;
  size_t hold_bytes = 0;
  for (size_t i = 0; i < patterns_->size(); ++i) {
    const Pattern& pattern = (*patterns_)[i];
    int32_t& matched = state_.matched[i];
    while (matched > 0 && pattern.text[static_cast<size_t>(matched)] != byte) {
      matched = pattern.border[static_cast<size_t>(matched)];
    }
    if (pattern.text[static_cast<size_t>(matched)] == byte) ++matched;
    const size_t length = static_cast<size_t>(matched);
    if (length == pattern.text.size()) stop_bytes = std::max(stop_bytes, length);
    hold_bytes = std::max(hold_bytes, length);
  }
  if (stop_bytes > 0) {
    certain.append(state_.held, 0, state_.held.size() - stop_bytes);
    state_.held.clear();
    state_.stopped = true;
    return;
  }
  const size_t free_bytes = state_.held.size() - hold_bytes;
  certain.append(state_.held, 0, free_bytes);
  state_.held.erase(0, free_bytes);
}

std::string StopMatcher::Flush() {
  std::fill(state_.matched.begin(), state_.matched.end(), 0);
  return std::exchange(state_.held, {});
}

void StopMatcher::Rollback(size_t pushes) {
  KVASIR_CHECK(pushes <= history_.size());
  if (pushes == 0) return;
  state_ = history_[history_.size() - pushes];
  history_.resize(history_.size() - pushes);
}

}  // namespace kvasir::runtime

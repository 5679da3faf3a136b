#include "router/server/turn_log.h"

#include <utility>

#include "engine/base/check.h"

namespace kvasir::server {

std::vector<std::shared_ptr<TurnLog::Reader>> TurnLog::Readers() const {
  std::vector<std::shared_ptr<Reader>> readers;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : readers_) {
    if (auto reader = weak.lock()) readers.push_back(std::move(reader));
  }
  return readers;
}

void TurnLog::Append(TurnEvent event) {
  {
    const std::lock_guard lock(mutex_);
    KVASIR_CHECK(!end_);
    events_.push_back(std::move(event));
  }
  TellReaders();
}

void TurnLog::Close(base::Status status) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(status);
}

void TurnLog::TellReaders() {
  for (const auto& reader : Readers()) reader->OnNews();
}

int64_t TurnLog::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(events_.size());
}

TurnEvent TurnLog::Get(int64_t seq) const {
  const std::lock_guard lock(mutex_);
  KVASIR_CHECK(seq >= 1 && seq <= static_cast<int64_t>(events_.size()));
  return events_[static_cast<size_t>(seq - 1)];
}

std::optional<base::Status> TurnLog::EndAfter(int64_t seq) const {
  const std::lock_guard lock(mutex_);
  if (seq < static_cast<int64_t>(events_.size())) return std::nullopt;
  return end_;
}

bool TurnLog::ended() const {
  const std::lock_guard lock(mutex_);
  return end_.has_value();
}

void TurnLog::Attach(const std::shared_ptr<Reader>& reader) {
  {
    const std::lock_guard lock(mutex_);
    readers_.push_back(reader);
  }
  reader->OnNews();
}

void TurnLog::Detach(const Reader* reader) {
  const std::lock_guard lock(mutex_);
  std::erase_if(readers_, [&](const auto& weak) {
    const auto alive = weak.lock();
    return alive == nullptr || alive.get() == reader;
  });
}

}  // namespace kvasir::server

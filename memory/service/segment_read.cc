#include "memory/service/segment_read.h"

namespace kvasir::service {
namespace {

base::Status Corrupt(const base::Status& status) {
  const absl::StatusCode code = status.code();
  if (code == absl::StatusCode::kUnavailable) return status;
  return base::WithReason(base::DataLoss("{}", base::ToStd(status.message())), "STATE_CORRUPT");
}

}  // namespace

base::StatusOr<std::shared_ptr<const kv::KvSegment>> ReadPart(const Core& core,
                                                              const store::UserKey& user,
                                                              const StatePart& part,
                                                              int64_t deadline_us) {
  KVASIR_ASSIGN_OR_RETURN(const kv::DataKey key, core.store->key_ring().UserDataKey(user));
  const auto header = core.store->ReadHeader(user, part.id);
  if (!header.ok()) return Corrupt(header.status());
  const auto decoder = kv::Decoder::Open(base::AsBytes(*header), part.id, key);
  if (!decoder.ok()) return Corrupt(decoder.status());
  const kv::SegmentInfo& info = (*decoder)->info();
  if (info.model_id != core.builder->model_id()) {
    return base::WithReason(
        base::FailedPrecondition("state of model {}, the server runs {}",
                                 info.model_id.digest.Hex(), core.builder->model_id().digest.Hex()),
        "MODEL_MISMATCH");
  }
  for (int chunk = 0; chunk < (*decoder)->chunk_count(); ++chunk) {
    if (core.clock->MonotonicMicros() >= deadline_us) return LoadTimeout();
    const auto bytes = core.store->ReadChunk(user, part.id, chunk);
    if (!bytes.ok()) return Corrupt(bytes.status());
    const base::Status added = (*decoder)->AddChunk(chunk, base::AsBytes(*bytes));
    if (!added.ok()) return Corrupt(added);
  }
  auto segment = (*decoder)->Finish(part.digest);
  if (!segment.ok()) return Corrupt(segment.status());
  if ((*segment)->info().first_position != part.first_position ||
      (*segment)->logical_tokens() != part.tokens) {
    return Corrupt(base::DataLoss("state of {} tokens at {}, its record says {} at {}",
                                  (*segment)->logical_tokens(), (*segment)->info().first_position,
                                  part.tokens, part.first_position));
  }
  return segment;
}

}  // namespace kvasir::service

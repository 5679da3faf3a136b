// Replay: the events of a turn that has ended, made again from its record: the same numbers, texts
// and tokens that were streamed then.
#pragma once

#include <vector>

#include "engine/base/status.h"
#include "engine/tokenizer/tokenizer.h"
#include "memory/service/records.h"
#include "router/server/turn_log.h"

namespace kvasir::server {

// Errors: DataLoss (route or sampling of the record are damaged); NotFound (its content was
// removed).
base::StatusOr<std::vector<TurnEvent>> ReplayEvents(const tokenizer::Tokenizer& tokenizer,
                                                    const service::TurnRecord& turn);

}  // namespace kvasir::server

// The machine's roof: what a benchmark's figures are held against.
#pragma once

#include "engine/base/thread_pool.h"

namespace kvasir::eval {

// Bytes per second that all threads of `pool` read together from memory far larger than any cache;
// the best of several passes. Takes about half a second.
double MeasureReadBandwidth(base::ThreadPool& pool);

}  // namespace kvasir::eval

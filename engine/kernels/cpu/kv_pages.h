// Writing and reading KV pages on a CPU path: Backend::Append, Mount and Extract.
#pragma once

#include "engine/base/thread_pool.h"
#include "engine/kernels/backend.h"
#include "engine/kernels/cpu/kernels.h"

namespace kvasir::kernels::cpu {

void AppendRows(const Kernels& kernels, base::ThreadPool& pool, const AppendParams& params);
void MountSlots(const Kernels& kernels, base::ThreadPool& pool, const Backend::MountParams& params);
void ExtractSlots(const Backend::ExtractParams& params);

}  // namespace kvasir::kernels::cpu

// The stored form of a record's value: version [1] ‖ salt [16] ‖ AES-256-GCM ciphertext ‖ tag [16],
// under a subkey of the user's data key, with the record key as additional data: a value moved to
// another key does not open. Internal.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/rng.h"
#include "engine/base/status.h"
#include "engine/kv/seal.h"
#include "memory/store/keys.h"

namespace kvasir::store {

inline constexpr size_t kValueOverheadBytes = 1 + kv::kSaltBytes + kv::kTagBytes;

std::string SealValue(const kv::DataKey& data_key, std::string_view key, std::string_view value,
                      base::Entropy& entropy);
// Errors: DataLoss (names the key), FailedPrecondition (newer version).
base::StatusOr<std::string> OpenValue(const kv::DataKey& data_key, std::string_view key,
                                      std::string_view sealed);

}  // namespace kvasir::store

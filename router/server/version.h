// The version of the programs.
#pragma once

namespace kvasir::server {

inline constexpr char kVersion[] = KVASIR_VERSION;

}  // namespace kvasir::server

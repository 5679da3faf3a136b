// Address: HOST:PORT of a listening socket.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::server {

struct Address {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;      // 0 to 65535
  bool operator==(const Address&) const = default;
};

// Reads "HOST:PORT" or "[IPV6]:PORT". A text that is only ":PORT" has the host 127.0.0.1.
// Errors: InvalidArgument.
base::StatusOr<Address> ParseAddress(std::string_view text);

// Back to text, brackets included.
std::string Format(const Address& address);

// True for "localhost", 127.0.0.0/8 and ::1. A host name that must be resolved is never loopback.
bool IsLoopback(const Address& address);

}  // namespace kvasir::server

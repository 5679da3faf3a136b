#include "router/server/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace kvasir::server {

base::StatusOr<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto bad = [&] { return base::InvalidArgument("'{}' is not HOST:PORT", text); };
  if (colon == std::string_view::npos || text.size() > 256) return bad();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']') && host.size() > 2) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  if (!std::ranges::all_of(host, printable)) return bad();
  Address address{.host = host.empty() ? "127.0.0.1" : std::string(host)};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) return bad();
  if (address.port < 0 || address.port > 65535) {
    return base::InvalidArgument("port {} is outside 0 to 65535", address.port);
  }
  return address;
}

std::string Format(const Address& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address.host, address.port)
            : fmt::format("{}:{}", address.host, address.port);
}

bool IsLoopback(const Address& address) {
  if (address.host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, address.host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return false;
}

}  // namespace kvasir::server

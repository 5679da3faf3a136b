// PageTokens: opaque page tokens (AIP-158) that fit the request they were made for and no other.
//
// A token is base64url(version ‖ tag ‖ cursor): the tag is HMAC-SHA-256 over the request without
// its page fields and the cursor, cut to 16 bytes. Who changes filter, parent, method or token gets
// PAGE_TOKEN_MISMATCH. Threads: all methods may be called concurrently.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace kvasir::server {

inline constexpr size_t kCursorBytesMax = 256;

class PageTokens {
 public:
  // `key`: at least 16 secret bytes. Tokens of another key are refused.
  explicit PageTokens(std::string key);

  // A token that continues `request` (its page_size and page_token are not looked at) at `cursor`.
  // REQUIRES: cursor.size() ≤ kCursorBytesMax.
  std::string Make(const google::protobuf::Message& request, std::string_view cursor) const;

  // The cursor of the request's page_token; "" when it has none.
  // Errors: InvalidArgument (PAGE_TOKEN_MISMATCH, field page_token).
  base::StatusOr<std::string> Cursor(const google::protobuf::Message& request) const;

 private:
  std::string Tag(const google::protobuf::Message& request, std::string_view cursor) const;
  std::string key_;
};

}  // namespace kvasir::server

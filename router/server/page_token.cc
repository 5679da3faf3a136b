#include "router/server/page_token.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "engine/base/check.h"

namespace kvasir::server {
namespace {

using google::protobuf::Message;

constexpr char kVersion = 1;
constexpr size_t kTagBytes = 16;
// Base64 text of the longest token.
constexpr size_t kTokenBytesMax = (1 + kTagBytes + kCursorBytesMax + 2) / 3 * 4;

// Method and fields that a token is bound to.
std::string Binding(const Message& request) {
  std::unique_ptr<Message> bound(request.New());
  bound->CopyFrom(request);
  for (const char* name : {"page_token", "page_size"}) {
    const auto* field = request.GetDescriptor()->FindFieldByName(name);
    KVASIR_CHECK(field != nullptr);
    bound->GetReflection()->ClearField(bound.get(), field);
  }
  std::string bytes = request.GetDescriptor()->full_name();
  bytes.push_back('\0');
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  bound->SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

base::Status Mismatch() {
  return base::WithField(
      base::WithReason(base::InvalidArgument("page_token: not a token that this server made for "
                                             "this request; start again without one"),
                       "PAGE_TOKEN_MISMATCH"),
      "page_token");
}

}  // namespace

PageTokens::PageTokens(std::string key) : key_(std::move(key)) { KVASIR_CHECK(key_.size() >= 16); }

std::string PageTokens::Tag(const Message& request, std::string_view cursor) const {
  const std::string binding = Binding(request);
  std::string text = fmt::format("{}:", binding.size());  // the border between the two parts
  text += binding;
  text += cursor;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  KVASIR_CHECK(HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()), data, text.size(),
                    digest, &size) != nullptr);
  KVASIR_CHECK(size >= kTagBytes);
  return std::string(reinterpret_cast<const char*>(digest), kTagBytes);
}

std::string PageTokens::Make(const Message& request, std::string_view cursor) const {
  KVASIR_CHECK(cursor.size() <= kCursorBytesMax);
  std::string raw(1, kVersion);
  raw += Tag(request, cursor);
  raw += cursor;
  return absl::WebSafeBase64Escape(raw);
}

base::StatusOr<std::string> PageTokens::Cursor(const Message& request) const {
  const auto* field = request.GetDescriptor()->FindFieldByName("page_token");
  KVASIR_CHECK(field != nullptr);
  const std::string token = request.GetReflection()->GetString(request, field);
  if (token.empty()) return std::string();
  std::string raw;
  if (token.size() > kTokenBytesMax || !absl::WebSafeBase64Unescape(token, &raw)) return Mismatch();
  if (raw.size() <= 1 + kTagBytes || raw[0] != kVersion) return Mismatch();
  const std::string cursor = raw.substr(1 + kTagBytes);
  const std::string tag = Tag(request, cursor);
  if (CRYPTO_memcmp(tag.data(), raw.data() + 1, kTagBytes) != 0) return Mismatch();
  return cursor;
}

}  // namespace kvasir::server

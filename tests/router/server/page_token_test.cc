// PageTokens: tokens moved between requests and damaged byte by byte; goal: only the right one is
// accepted.
#include "router/server/page_token.h"

#include <gtest/gtest.h>

#include "kvasir/v1/memory.pb.h"
#include "kvasir/v1/session.pb.h"

namespace kvasir::server {
namespace {

const std::string kKey(32, 'k');

v1::ListMemoriesRequest Request() {
  v1::ListMemoriesRequest request;
  request.set_parent("users/ann");
  request.set_page_size(10);
  return request;
}

void ExpectMismatch(const base::StatusOr<std::string>& cursor) {
  ASSERT_FALSE(cursor.ok());
  EXPECT_EQ(cursor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::Reason(cursor.status()), "PAGE_TOKEN_MISMATCH");
  EXPECT_EQ(base::Field(cursor.status()), "page_token");
}

TEST(PageTokens, ContinueWhereTheyWereMadeWhateverThePageSize) {
  const PageTokens tokens(kKey);
  auto request = Request();
  EXPECT_EQ(*tokens.Cursor(request), "");
  for (const std::string& cursor :
       {std::string("x"), std::string("\0\xff", 2), std::string(256, 'c')}) {
    request.set_page_token(tokens.Make(Request(), cursor));
    request.set_page_size(3);
    EXPECT_EQ(*tokens.Cursor(request), cursor);
  }
}

TEST(PageTokens, AreRefusedForAnotherRequest) {
  const PageTokens tokens(kKey);
  const std::string token = tokens.Make(Request(), "cursor");
  auto other_user = Request();
  other_user.set_parent("users/bob");
  other_user.set_page_token(token);
  ExpectMismatch(tokens.Cursor(other_user));
  auto other_view = Request();
  other_view.set_view(v1::MEMORY_VIEW_FULL);
  other_view.set_page_token(token);
  ExpectMismatch(tokens.Cursor(other_view));
  v1::ListSessionsRequest other_method;
  other_method.set_parent("users/ann");
  other_method.set_page_token(token);
  ExpectMismatch(tokens.Cursor(other_method));
}

TEST(PageTokens, AreRefusedWhenDamagedForeignOrTooLong) {
  const PageTokens tokens(kKey);
  const std::string token = tokens.Make(Request(), "cursor");
  auto request = Request();
  for (size_t i = 0; i < token.size(); ++i) {
    std::string damaged = token;
    damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
    request.set_page_token(damaged);
    ExpectMismatch(tokens.Cursor(request));
  }
  const std::string foreign = PageTokens(std::string(32, 'x')).Make(Request(), "cursor");
  for (const std::string& bad : {foreign, token.substr(0, 10), std::string("%%%"), std::string("1"),
                                 std::string(100'000, 'A')}) {
    request.set_page_token(bad);
    ExpectMismatch(tokens.Cursor(request));
  }
}

}  // namespace
}  // namespace kvasir::server

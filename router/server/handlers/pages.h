// Pages of lists: page_size and page_token of a request, next_page_token of its answer.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "memory/service/sessions.h"
#include "router/server/page_token.h"

namespace kvasir::server {

inline constexpr int64_t kPageSizeDefault = 50;

// Errors: InvalidArgument reason PAGE_TOKEN_MISMATCH.
template <typename Request>
base::StatusOr<service::ListPage> PageOf(const PageTokens& tokens, const Request& request) {
  service::ListPage page;
  page.size = request.page_size() > 0 ? request.page_size() : kPageSizeDefault;
  KVASIR_ASSIGN_OR_RETURN(page.after, tokens.Cursor(request));
  return page;
}

// `next`: Listed::next.
template <typename Request>
std::string NextToken(const PageTokens& tokens, const Request& request, const std::string& next) {
  return next.empty() ? "" : tokens.Make(request, next);
}

}  // namespace kvasir::server

// Every method with requests that are wrong in one way each; goal: the documented code and reason,
// nothing changed, and a server that still works.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/router/server/service/tiny_server.h"

namespace kvasir::server {
namespace {

struct Outcome {
  grpc::StatusCode code;
  std::string reason;
  bool operator==(const Outcome&) const = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.code << " " << outcome.reason;
}

Outcome Of(const grpc::Status& status) { return {status.error_code(), ReasonOf(status)}; }

const Outcome kInvalid = {grpc::StatusCode::INVALID_ARGUMENT, "INVALID_FIELD"};
const Outcome kNotFound = {grpc::StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND"};

class ServiceBadInput : public ::testing::Test {
 protected:
  ServiceBadInput() : server_(data_.path()), session_(server_.NewSession("ana")) {}

  // The outcome of `method` with only the field `name` (or `parent`) set.
  template <typename Request, typename Response, typename Stub>
  Outcome WithName(Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const std::string& name) {
    Request request;
    if constexpr (requires { request.set_name(name); }) {
      request.set_name(name);
    } else {
      request.set_parent(name);
    }
    Response response;
    return Of(Call(stub, method, request, &response));
  }

  // Every method that takes a resource name, with wrong ones.
  template <typename Request, typename Response, typename Stub>
  void ExpectNames(Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                   const std::string& well_formed_foreign) {
    const std::string long_name = "users/" + std::string(2000, 'x');
    for (const std::string& name :
         std::vector<std::string>{"", "users", "users/", "users/-", "users/a b", "user/ana", "/",
                                  "users/ana/", "users//sessions/s", "users/\xff", "users/../x",
                                  "sessions/x", std::string("users/a\0b", 9), long_name}) {
      EXPECT_EQ(WithName(stub, method, name), kInvalid)
          << Request::descriptor()->name() << " '" << name.substr(0, 40) << "'";
    }
    if (well_formed_foreign.empty()) return;
    EXPECT_EQ(WithName(stub, method, well_formed_foreign), kNotFound)
        << Request::descriptor()->name();
  }

  TempFolder data_;
  TinyServer server_;
  std::string session_;
};

TEST_F(ServiceBadInput, NamesAreCheckedByEveryMethod) {
  using Sessions = v1::SessionService::Stub;
  auto& sessions = server_.sessions();
  const std::string foreign = "users/bob/sessions/" + session_.substr(session_.rfind('/') + 1);
  ExpectNames(sessions, &Sessions::CreateSession, "");
  ExpectNames(sessions, &Sessions::GetSession, foreign);
  ExpectNames(sessions, &Sessions::ListSessions, "");
  ExpectNames(sessions, &Sessions::DeleteSession, foreign);
  ExpectNames(sessions, &Sessions::CancelTurn, foreign + "/turns/1");
  ExpectNames(sessions, &Sessions::GetTurn, foreign + "/turns/1");
  ExpectNames(sessions, &Sessions::ListTurns, foreign);
  ExpectNames(sessions, &Sessions::CompactSession, foreign);
  using Memories = v1::MemoryService::Stub;
  auto& memories = server_.memories();
  ExpectNames(memories, &Memories::GetMemory, "users/bob/memories/m");
  ExpectNames(memories, &Memories::ListMemories, "");
  ExpectNames(memories, &Memories::SearchMemories, "");
  ExpectNames(memories, &Memories::DeleteMemory, "users/bob/memories/m");
  using Users = v1::UserService::Stub;
  ExpectNames(server_.users(), &Users::GetUser, "users/nobody");
  ExpectNames(server_.users(), &Users::EraseUser, "");
  ExpectNames(server_.users(), &Users::GetErasure, "erasures/none");
  using Operations = v1::OperationService::Stub;
  ExpectNames(server_.operations(), &Operations::GetOperation, "operations/none");
  ExpectNames(server_.operations(), &Operations::WaitOperation, "operations/none");
}

// Chat requests that are right but for one field.
TEST_F(ServiceBadInput, ChatChecksEveryField) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  using Change = std::function<void(v1::ChatRequest&)>;
  std::vector<Change> changes;
  const auto add = [&](const auto& values, auto set) {
    for (const auto value : values) {
      changes.push_back([=](v1::ChatRequest& request) { (request.*set)(value); });
    }
  };
  using R = v1::ChatRequest;
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  add(std::vector<int32_t>{0, -1, 32769, kMin, kMax}, &R::set_max_output_tokens);
  add(std::vector<double>{-1, -1e-9, 2.01, nan, inf, -inf}, &R::set_temperature);
  add(std::vector<double>{0, -1, 1.01, nan, inf}, &R::set_top_p);
  add(std::vector<double>{-0.1, 1.01, nan, inf}, &R::set_min_p);
  add(std::vector<int32_t>{-1, 1001, kMin, kMax}, &R::set_top_k);
  add(std::vector<int32_t>{-1, kMin, kMax}, &R::set_seed);
  add(std::vector<int32_t>{-1, kMin, kMax, 3}, &R::set_resume_after_seq);  // 3: without an id
  for (const std::string& text : std::vector<std::string>{"", std::string((1 << 20) + 1, 'x'),
                                                          "\xff", std::string("\0", 1)}) {
    changes.push_back([text](R& request) { request.set_message(text); });
  }
  for (const std::string& id : std::vector<std::string>{"a b", std::string(129, 'x'), "\x7f"}) {
    changes.push_back([id](R& request) { request.set_request_id(id); });
  }
  changes.push_back([](R& request) { request.add_stop(""); });
  changes.push_back([](R& request) { request.add_stop(std::string(257, 'x')); });
  changes.push_back([](R& request) {
    for (int i = 0; i < 9; ++i) request.add_stop("x");
  });
  changes.push_back([](R& request) { request.set_memory_mode(static_cast<v1::MemoryMode>(77)); });
  changes.push_back([](R& request) { request.set_session("users/ana"); });
  for (size_t i = 0; i < changes.size(); ++i) {
    v1::ChatRequest request = TinyServer::Request(session_, "Hello");
    changes[i](request);
    const Reply reply = server_.Chat(request);
    EXPECT_EQ(Of(reply.status), kInvalid) << "change " << i;
    EXPECT_TRUE(reply.events.empty());
  }
  v1::ChatRequest foreign = TinyServer::Request("users/bob/sessions/none", "Hello");
  EXPECT_EQ(Of(server_.Chat(foreign).status), kNotFound);
  // Nothing of all that became a turn.
  EXPECT_EQ(server_.Say(session_, "Hello").turn, session_ + "/turns/1");
}

TEST_F(ServiceBadInput, SessionsAreCheckedBeforeTheyAreMade) {
  const auto create = [&](const std::function<void(v1::CreateSessionRequest&)>& change) {
    v1::CreateSessionRequest request;
    request.set_parent("users/ana");
    change(request);
    v1::Session session;
    return Of(
        Call(server_.sessions(), &v1::SessionService::Stub::CreateSession, request, &session));
  };
  using R = v1::CreateSessionRequest;
  EXPECT_EQ(create([](R& r) { r.set_session_id("a/b"); }), kInvalid);
  EXPECT_EQ(create([](R& r) { r.set_session_id(std::string(129, 'x')); }), kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_display_name(std::string(257, 'x')); }),
            kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_system_prompt(std::string(65537, 'x')); }),
            kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_turn_count(1); }), kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_name("users/ana/sessions/x"); }), kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_model("other"); }), kInvalid);
  EXPECT_EQ(create([](R& r) { r.mutable_session()->set_model("models/other"); }),
            (Outcome{grpc::StatusCode::FAILED_PRECONDITION, "MODEL_MISMATCH"}));
  EXPECT_EQ(create([](R& r) { r.set_session_id("once"); }), (Outcome{grpc::StatusCode::OK, ""}));
  EXPECT_EQ(create([](R& r) { r.set_session_id("once"); }),
            (Outcome{grpc::StatusCode::ALREADY_EXISTS, "RESOURCE_EXISTS"}));
}

TEST_F(ServiceBadInput, ListsSearchesAndRoutesCheckTheirFields) {
  v1::ListSessionsRequest list;
  list.set_parent("users/ana");
  v1::ListSessionsResponse sessions;
  for (const int32_t size : {-1, 1001, std::numeric_limits<int32_t>::max()}) {
    list.set_page_size(size);
    EXPECT_EQ(
        Of(Call(server_.sessions(), &v1::SessionService::Stub::ListSessions, list, &sessions)),
        kInvalid);
  }
  list.set_page_size(0);
  list.set_page_token("nonsense");
  EXPECT_EQ(Of(Call(server_.sessions(), &v1::SessionService::Stub::ListSessions, list, &sessions)),
            (Outcome{grpc::StatusCode::INVALID_ARGUMENT, "PAGE_TOKEN_MISMATCH"}));
  v1::SearchMemoriesRequest search;
  search.set_parent("users/ana");
  v1::SearchMemoriesResponse found;
  const auto outcome = [&] {
    return Of(Call(server_.memories(), &v1::MemoryService::Stub::SearchMemories, search, &found));
  };
  EXPECT_EQ(outcome(), kInvalid);  // no query
  search.set_query(std::string(8193, 'x'));
  EXPECT_EQ(outcome(), kInvalid);
  search.set_query("cat");
  search.set_top_k(101);
  EXPECT_EQ(outcome(), kInvalid);
  v1::ExplainRouteRequest explain;
  v1::ExplainRouteResponse route;
  const auto explained = [&] {
    return Of(Call(server_.memories(), &v1::MemoryService::Stub::ExplainRoute, explain, &route));
  };
  EXPECT_EQ(explained(), kInvalid);  // neither
  explain.set_session(session_);
  EXPECT_EQ(explained(), kInvalid);  // no message
  explain.set_message("Hello");
  explain.set_turn(session_ + "/turns/1");
  EXPECT_EQ(explained(), kInvalid);  // both
  explain.clear_turn();
  explain.set_session("users/bob/sessions/none");
  EXPECT_EQ(explained(), kNotFound);
}

TEST_F(ServiceBadInput, PagesWalkExactlyOnceOverAllSessions) {
  std::vector<std::string> made = {session_};
  for (int i = 0; i < 6; ++i) made.push_back(server_.NewSession("ana"));
  v1::ListSessionsRequest list;
  list.set_parent("users/ana");
  list.set_page_size(3);
  std::vector<std::string> found;
  do {
    v1::ListSessionsResponse page;
    ASSERT_TRUE(
        Call(server_.sessions(), &v1::SessionService::Stub::ListSessions, list, &page).ok());
    for (const auto& session : page.sessions()) found.push_back(session.name());
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  std::ranges::sort(made);
  std::ranges::sort(found);
  EXPECT_EQ(found, made);
}

}  // namespace
}  // namespace kvasir::server

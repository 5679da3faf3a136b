#include "tests/router/server/service/tiny_server.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "engine/base/check.h"
#include "engine/gguf/file.h"
#include "engine/runtime/prompt.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/support/tiny_model.h"

namespace kvasir::server {
namespace {

// One file for all servers of the process.
const std::string& ModelPath() {
  static const testing::TinyModelFile file({});
  return file.path();
}

base::RealClock& Clock() {
  static base::RealClock clock;
  return clock;
}

base::SystemEntropy& Entropy() {
  static base::SystemEntropy entropy;
  return entropy;
}

}  // namespace

int64_t UserTurnTokens(const std::string& message) {
  const auto file = *gguf::File::Open(ModelPath());
  const auto tokenizer = *tokenizer::Tokenizer::Create(*file);
  const tokenizer::ChatTemplate chat = *tokenizer::ChatTemplate::Create(*file, tokenizer.get());
  const runtime::Prompt prompt = *runtime::Prompt::Create(tokenizer.get(), &chat);
  return static_cast<int64_t>(prompt.UserTurn(message).size());
}

std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status rpc;
  if (!rpc.ParseFromString(status.error_details())) return "";
  for (const auto& detail : rpc.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

TinyServer::TinyServer(const std::string& data, const std::function<void(Options&)>& change) {
  Options options;
  options.model = ModelPath();
  options.data = data;
  options.listen = "127.0.0.1:0";
  options.threads = 1;
  options.handler_threads = 4;
  options.kv_bytes_max = 256 << 20;
  options.mount_slack_tokens = 512;
  if (change) change(options);
  auto server = Server::Start(options, &Clock(), &Entropy());
  KVASIR_CHECK(server.ok());
  server_ = *std::move(server);
  const base::Status loaded = server_->Load(nullptr);
  EXPECT_TRUE(loaded.ok()) << loaded;
  KVASIR_CHECK(loaded.ok());
  const auto channel = NewChannel();
  sessions_ = v1::SessionService::NewStub(channel);
  memories_ = v1::MemoryService::NewStub(channel);
  users_ = v1::UserService::NewStub(channel);
  admin_ = v1::AdminService::NewStub(channel);
  operations_ = v1::OperationService::NewStub(channel);
}

TinyServer::~TinyServer() { server_->Stop(); }

std::shared_ptr<grpc::Channel> TinyServer::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  return grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server_->port()),
                                   grpc::InsecureChannelCredentials(), arguments);
}

std::string TinyServer::NewSession(const std::string& user, v1::MemoryMode mode,
                                   const std::string& id) {
  v1::CreateSessionRequest request;
  request.set_parent("users/" + user);
  request.set_session_id(id);
  request.mutable_session()->set_memory_mode(mode);
  v1::Session session;
  const grpc::Status status =
      Call(*sessions_, &v1::SessionService::Stub::CreateSession, request, &session);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return session.name();
}

v1::ChatRequest TinyServer::Request(const std::string& session, const std::string& message,
                                    int32_t max_output_tokens) {
  v1::ChatRequest request;
  request.set_session(session);
  request.set_message(message);
  request.set_max_output_tokens(max_output_tokens);
  request.set_temperature(0.8);
  request.set_seed(7);
  request.set_logprobs(true);
  return request;
}

Reply TinyServer::Chat(const v1::ChatRequest& request,
                       const std::function<void(const v1::ChatResponse&)>& on_event) {
  grpc::ClientContext context;
  auto stream = sessions_->Chat(&context, request);
  Reply reply;
  v1::ChatResponse event;
  while (stream->Read(&event)) {
    reply.events.push_back(event);
    reply.turn = event.turn();
    if (event.has_route()) reply.route = event.route();
    if (event.has_usage()) reply.usage = event.usage();
    if (event.has_finish()) reply.finish = event.finish().reason();
    reply.text += event.delta().text();
    for (const int32_t id : event.delta().token_ids()) reply.ids.push_back(id);
    for (const float logprob : event.delta().logprobs()) reply.logprobs.push_back(logprob);
    if (on_event) on_event(event);
  }
  reply.status = stream->Finish();
  reply.reason = ReasonOf(reply.status);
  return reply;
}

Reply TinyServer::Say(const std::string& session, const std::string& message,
                      int32_t max_output_tokens) {
  Reply reply = Chat(Request(session, message, max_output_tokens));
  EXPECT_TRUE(reply.status.ok()) << reply.status.error_message() << " " << reply.reason;
  const v1::Usage& usage = reply.usage;
  EXPECT_EQ(usage.prompt_tokens(),
            usage.computed_tokens() + usage.session_cached_tokens() + usage.memory_tokens());
  return reply;
}

std::string TinyServer::Close(const std::string& session) {
  v1::CompactSessionRequest request;
  request.set_name(session);
  v1::Operation operation;
  grpc::Status status =
      Call(*sessions_, &v1::SessionService::Stub::CompactSession, request, &operation);
  EXPECT_TRUE(status.ok()) << status.error_message();
  v1::WaitOperationRequest wait;
  wait.set_name(operation.name());
  status = Call(*operations_, &v1::OperationService::Stub::WaitOperation, wait, &operation);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(operation.done());
  v1::CompactSessionResponse response;
  EXPECT_TRUE(operation.response().UnpackTo(&response));
  return response.memory();
}

std::vector<v1::Memory> TinyServer::Memories(const std::string& user) {
  v1::ListMemoriesRequest request;
  request.set_parent("users/" + user);
  v1::ListMemoriesResponse response;
  const grpc::Status status =
      Call(*memories_, &v1::MemoryService::Stub::ListMemories, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {response.memories().begin(), response.memories().end()};
}

bool TinyServer::Consistent() {
  v1::CheckConsistencyResponse response;
  const grpc::Status status = Call(*admin_, &v1::AdminService::Stub::CheckConsistency,
                                   v1::CheckConsistencyRequest(), &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const auto& finding : response.findings()) {
    ADD_FAILURE() << finding.kind() << " " << finding.detail();
  }
  return response.clean();
}

}  // namespace kvasir::server

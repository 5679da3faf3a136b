// Compressed requests: zeros that shrink a thousandfold, sent to a server in a process of its own;
// goal: refused, and its peak memory shows that nothing was expanded (known fault: 0.5 MB becomes
// 600 MB).
//
// The child is this program, started with --serve: it prints its port and ends with its standard
// input.
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "router/server/grpc_server.h"

namespace kvasir::server {
namespace {

using grpc::health::v1::Health;

constexpr size_t kZeros = 64 << 20;
constexpr int64_t kGrowthKibMax = 24 << 10;  // far below the zeros, far above a connection

int Serve() {
  Options options;
  options.listen = "127.0.0.1:0";
  const auto server = GrpcServer::Start(options, {});
  if (!server.ok()) return 1;
  (*server)->SetServing(true);
  std::cout << (*server)->port() << std::endl;
  std::string line;
  std::getline(std::cin, line);
  return 0;
}

class ServerProcess {
 public:
  ServerProcess() {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    for (const int fd : {in[0], in[1], out[0], out[1]}) {
      posix_spawn_file_actions_addclose(&actions, fd);
    }
    char self[] = "/proc/self/exe", flag[] = "--serve";
    char* arguments[] = {self, flag, nullptr};
    posix_spawn(&pid_, self, &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    FILE* text = fdopen(out[0], "r");
    if (std::fscanf(text, "%d", &port_) != 1) port_ = 0;
    std::fclose(text);
  }
  ~ServerProcess() {
    close(in_);
    waitpid(pid_, nullptr, 0);
  }

  int port() const { return port_; }

  int64_t PeakKib() const {
    std::ifstream file(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6));
    }
    return -1;
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1;
  int port_ = 0;
};

grpc::Status Check(Health::Stub* stub, const std::string& service,
                   grpc_compression_algorithm algorithm) {
  grpc::ClientContext context;
  context.set_compression_algorithm(algorithm);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  return stub->Check(&context, request, &response);
}

TEST(Compression, ARequestOfCompressedZerosIsRefusedWithoutBeingExpanded) {
  const ServerProcess server;
  ASSERT_NE(server.port(), 0);
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto channel = grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", server.port()),
                                                 grpc::InsecureChannelCredentials(), arguments);
  const auto stub = Health::NewStub(channel);
  ASSERT_TRUE(Check(stub.get(), "", GRPC_COMPRESS_NONE).ok());
  const int64_t before_kib = server.PeakKib();
  ASSERT_GT(before_kib, 0);
  const std::string zeros(kZeros, '\0');
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    const grpc::Status status = Check(stub.get(), zeros, algorithm);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  }
  EXPECT_LT(server.PeakKib() - before_kib, kGrowthKibMax);
  EXPECT_TRUE(Check(stub.get(), "", GRPC_COMPRESS_NONE).ok());
}

}  // namespace
}  // namespace kvasir::server

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--serve") return kvasir::server::Serve();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

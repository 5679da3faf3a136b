// I1 and I2 under kill -9: an acknowledged batch is present and byte-equal, no batch is half there.
// Method: a child process commits from several threads into one store and reports each
// acknowledgement through a pipe; it is killed after a seeded number of them, at whatever point its
// threads then are. The store is checked and the next child goes on with it.
//   --rounds=N --seed=S
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/memory/store/crash_load.h"
#include "tests/memory/store/test_store.h"

namespace kvasir::store {
namespace {

struct Settings {
  int rounds = 10;
  uint64_t seed = 1;
};
Settings& Chosen() {
  static Settings settings;
  return settings;
}

// Starts this program as a child that runs the load; gives its process id and the end of the pipe.
pid_t StartLoad(const std::string& dir, FILE*& acknowledgements) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const std::string fd = std::to_string(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::execl("/proc/self/exe", "store_crash_test", "--load", dir.c_str(), fd.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  acknowledgements = ::fdopen(ends[0], "r");
  return child;
}

// Reads acknowledgements; kills the child after `count` of them, then reads what it had sent.
void ReadAndKill(pid_t child, FILE* pipe, uint64_t count, Acknowledged& acknowledged) {
  int thread = 0;
  unsigned long long n = 0;
  uint64_t seen = 0;
  while (std::fscanf(pipe, "%d %llu\n", &thread, &n) == 2) {
    acknowledged[thread] = n + 1;
    if (++seen == count) ::kill(child, SIGKILL);
  }
  std::fclose(pipe);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "child ended by itself";
}

TEST(StoreCrash, EveryAcknowledgedBatchSurvivesKillAndNoneIsHalf) {
  const TempDir temp;
  Acknowledged acknowledged;
  for (int round = 0; round < Chosen().rounds; ++round) {
    const auto count = static_cast<uint64_t>(1 + 60 * base::UniformAt(Chosen().seed, 0, round));
    FILE* pipe = nullptr;
    const pid_t child = StartLoad(temp.path(), pipe);
    ASSERT_GT(child, 0);
    ReadAndKill(child, pipe, count, acknowledged);
    ASSERT_EQ(CheckLoad(temp.path(), acknowledged), "")
        << "round " << round << ", seed " << Chosen().seed << ", killed after " << count;
    // A batch that was durable before it was acknowledged counts from now on.
    acknowledged = LoadedBatches(temp.path());
  }
}

}  // namespace
}  // namespace kvasir::store

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--load") == 0) {
    const std::string pipe = argv[3];
    int fd = -1;
    std::from_chars(pipe.data(), pipe.data() + pipe.size(), fd);
    kvasir::store::RunLoad(argv[2], fd);
  }
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const char* end = argument.data() + argument.size();
    auto& settings = kvasir::store::Chosen();
    if (argument.starts_with("--rounds=")) {
      std::from_chars(argument.data() + 9, end, settings.rounds);
    } else if (argument.starts_with("--seed=")) {
      std::from_chars(argument.data() + 7, end, settings.seed);
    }
  }
  return RUN_ALL_TESTS();
}

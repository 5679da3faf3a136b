// The process that crash_test.cc kills: works on a memory tier and writes a line for every
// acknowledged step. Usage: service_crash_child DIR
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "engine/base/check.h"
#include "memory/service/memory_tier.h"
#include "tests/memory/service/test_builder.h"

namespace kvasir::service {
namespace {

// One write, so that lines of threads do not mix.
void Acknowledge(const std::string& line) {
  KVASIR_CHECK(write(STDOUT_FILENO, line.data(), line.size()) == std::ssize(line));
}

// Turns of one user for ever: "turn USER SESSION NUMBER" and "learned USER SESSION NUMBER" lines.
void Work(MemoryTier& tier, const std::string& name) {
  const UserRef user{.user = name};
  for (int n = 0;; ++n) {
    SessionRecord wanted;
    wanted.system_prompt = n % 3 == 2 ? "be brief" : "";  // built from text at the close
    const auto session = tier.sessions().Create(user, wanted);
    KVASIR_CHECK(session.ok());
    TestTail tail;
    for (int64_t i = 1; i <= 4; ++i) {
      TurnStart start;
      start.turn.user_text = "question of " + session->name;
      start.offset = kBaseTokens;
      start.date = "2026-12-01";
      auto turn = tier.sessions().BeginTurn(user, session->name, start);
      KVASIR_CHECK(turn.ok());
      turn->reply_text = "answer " + std::to_string(i);
      KVASIR_CHECK(tier.sessions().FinishTurn(user, *turn).ok());
      const std::string step = name + " " + session->name + " " + std::to_string(i) + "\n";
      Acknowledge("turn " + step);
      KVASIR_CHECK(
          tier.sessions().SaveState(user, session->name, i, {tail.Next(20, i)}, false).ok());
      if (wanted.system_prompt.empty()) Acknowledge("learned " + step);
    }
    KVASIR_CHECK(tier.sessions().Close(user, session->name).ok());
    if (n % 4 == 3) {
      KVASIR_CHECK(tier.sessions().Delete(user, session->name).ok());
      Acknowledge("deleted " + name + " " + session->name + " 0\n");
    }
  }
}

int Main(const char* dir) {
  const base::RealClock clock;
  base::SystemEntropy entropy;
  TestBuilder builder;
  TierOptions options;
  options.dir = dir;
  auto tier = MemoryTier::Open(options, &clock, &entropy, &builder);
  if (!tier.ok()) return 1;
  (*tier)->StartJobs();
  std::vector<std::thread> threads;
  for (const char* user : {"ann", "bob"}) {
    threads.emplace_back([&, user] { Work(**tier, user); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace
}  // namespace kvasir::service

int main(int argc, char** argv) { return argc == 2 ? kvasir::service::Main(argv[1]) : 2; }

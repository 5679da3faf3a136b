// The process that stored_state_test.cc kills. Usage: identity_child MODEL DATA memory TOKENS |
// session MAX_OUTPUT_TOKENS. It writes one line when the state is acknowledged, and goes on.
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "engine/base/check.h"
#include "tests/router/server/identity/assembly.h"
#include "tests/router/server/identity/messages.h"

namespace kvasir::server {
namespace {

void Acknowledge(const std::string& line) {
  KVASIR_CHECK(write(STDOUT_FILENO, line.data(), line.size()) == std::ssize(line));
}

// Says once that a reply is being made.
class ReplyBegun final : public TurnLog::Reader {
 public:
  explicit ReplyBegun(const TurnLog* log) : log_(log) {}
  void OnNews() override {
    // The route, and some tokens.
    if (log_->size() >= 4 && !said_.exchange(true)) Acknowledge("stored\n");
  }

 private:
  const TurnLog* const log_;
  std::atomic<bool> said_ = false;
};

int Main(const std::string& model, const std::string& data, const std::string& what,
         int64_t number) {
  Assembly assembly(model, data);
  if (what == "memory") {
    Acknowledge(assembly.StoreMemory(number).Hex() + "\n");
    while (true) pause();
  }
  KVASIR_CHECK(what == "session");
  assembly.Say(kFirstMessage, number);
  // The state of this turn is stored; the kill comes in the middle of the next.
  const auto next = assembly.Begin(kSecondMessage, 1000);
  const auto reader = std::make_shared<ReplyBegun>(&next->log);
  next->log.Attach(reader);
  while (true) pause();
}

}  // namespace
}  // namespace kvasir::server

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return kvasir::server::Main(argv[1], argv[2], argv[3], std::strtoll(argv[4], nullptr, 10));
}

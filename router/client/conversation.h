// Conversation: a session as the chat command and the REPL use it; made with its first message.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "router/client/chat_stream.h"
#include "router/client/client.h"

namespace kvasir::client {

// What the command line says about every turn.
struct TurnOptions {
  v1::MemoryMode memory_mode = v1::MEMORY_MODE_UNSPECIFIED;
  std::optional<double> temperature;
  std::optional<int> seed;
  std::optional<int> max_output_tokens;
};

class Conversation {
 public:
  // `session`: id or full name of a session that is continued, or made when there is none; empty: a
  // new one. Calls nothing yet.
  Conversation(Client& client, std::string session, TurnOptions options)
      : client_(client), wanted_(std::move(session)), options_(options) {}

  // Full name; empty before the first message.
  const std::string& session() const { return session_; }
  // True when this object made the session.
  bool made() const { return made_; }
  TurnOptions& options() { return options_; }

  // Sends a message; see RunTurn.
  base::StatusOr<Reply> Send(const std::string& message,
                             const std::function<void(std::string_view)>& on_text);
  // Closes the session when this object made it and it leaves a memory. Waits for the memory, whose
  // name is returned; "" when there is none to make. The next message begins a new session.
  base::StatusOr<std::string> Close();

 private:
  base::Status Open();
  base::Status Create(const std::string& id);

  Client& client_;
  std::string wanted_;
  TurnOptions options_;
  std::string session_;
  bool made_ = false;
};

}  // namespace kvasir::client

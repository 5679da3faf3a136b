// Repl: the chat in the terminal.
//
// A line is a message, or a command when it begins with '/'. A failed turn is told and the chat
// goes on. Ctrl-C stops a reply; at the prompt it drops the line. The end of the input ends the
// chat.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "router/client/conversation.h"

namespace kvasir::client {

class Repl {
 public:
  Repl(Client& client, Conversation& conversation)
      : client_(client),
        conversation_(conversation),
        usual_mode_(conversation.options().memory_mode) {}

  // Reads and answers until the end; then closes the session, so that it is remembered.
  // Errors: the server cannot be reached at the beginning.
  base::Status Run();

 private:
  base::Status Greet();
  void Say(const std::string& message);
  // False for /quit.
  bool Do(const std::string& line);
  void Tell(const base::Status& status);

  base::Status ListMemories();
  base::Status Why();
  base::Status Forget(const std::string& which);
  base::Status Incognito();
  base::Status NewSession();
  base::Status ShowSession();
  base::Status ShowStats();
  base::Status Help();

  Client& client_;
  Conversation& conversation_;
  const v1::MemoryMode usual_mode_;
  std::optional<Reply> last_;          // of this chat
  std::vector<std::string> memories_;  // names in the order in which /memory listed them
};

}  // namespace kvasir::client

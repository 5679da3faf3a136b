// kvasir chat

#include <algorithm>
#include <memory>

#include "router/client/commands/commands.h"
#include "router/client/progress.h"
#include "router/client/render.h"
#include "router/client/repl.h"
#include "router/client/usage.h"

namespace kvasir::client {
namespace {

struct ChatArguments {
  std::string session;
  std::string once;
  bool close = false;
  TurnOptions turn;
};

// One message: the reply as text while it comes, or one JSON object.
base::Status Once(Client& client, Conversation& conversation, const ChatArguments& arguments) {
  Output& output = client.output;
  Progress progress(output, "thinking");
  bool begun = false;
  const auto reply = conversation.Send(arguments.once, [&](std::string_view text) {
    if (output.json()) return;
    if (!begun) progress.Stop();
    begun = true;
    output.out() << (output.style().terminal ? Printable(text) : std::string(text)) << std::flush;
  });
  progress.Stop();
  if (begun) output.out() << "\n";
  KVASIR_RETURN_IF_ERROR(reply.status());
  if (output.json()) output.out() << ReplyJson(*reply) << "\n";
  if (output.style().terminal && !output.json()) {
    output.notes() << output.Paint(Tint::kDim, UsageLine(reply->route, reply->usage)) << "\n";
  }
  if (arguments.close) KVASIR_RETURN_IF_ERROR(CloseSession(client, reply->session).status());
  return base::OkStatus();
}

base::Status Chat(Client& client, const ChatArguments& arguments) {
  Conversation conversation(client, arguments.session, arguments.turn);
  if (!arguments.once.empty()) return Once(client, conversation, arguments);
  if (client.output.json()) {
    return base::InvalidArgument("-o json needs --once TEXT: a conversation is no JSON document");
  }
  Interrupt interrupt;
  client.interrupt = &interrupt;
  const base::Status status = Repl(client, conversation).Run();
  client.interrupt = nullptr;
  return status;
}

}  // namespace

void AddChatCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<ChatArguments>();
  TurnOptions& turn = arguments->turn;
  CLI::App* chat = app.add_subcommand("chat", "talk to the model");
  chat->add_option("--session", arguments->session,
                   "id or full name of a session to continue, made when there is none");
  AddChoice<v1::MemoryMode>(*chat, "--memory", "off, read, read_write or incognito",
                            {{"off", v1::MEMORY_MODE_OFF},
                             {"read", v1::MEMORY_MODE_READ},
                             {"read_write", v1::MEMORY_MODE_READ_WRITE},
                             {"incognito", v1::MEMORY_MODE_INCOGNITO}},
                            &turn.memory_mode)
      ->option_text("MODE");
  chat->add_option("--once", arguments->once, "send this, print the reply, stop");
  chat->add_flag("--close", arguments->close, "with --once: then close the session");
  chat->add_option("--temperature", turn.temperature, "0 to 2; 0: the most probable token");
  chat->add_option("--seed", turn.seed, "0 to 2147483646");
  chat->add_option("--max-tokens", turn.max_output_tokens, "most tokens of a reply, 1 to 32768");
  chat->callback([&chosen, arguments] {
    chosen = [arguments](Client& client) { return Chat(client, *arguments); };
  });
}

}  // namespace kvasir::client

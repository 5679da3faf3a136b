// ChatTemplate: how one model family writes a conversation. The file's Jinja template is
// recognised, not run: its statements must equal those of a known template (apart from white space,
// quotes and the text of a default system message), and the conversation is then written natively.
//
// Content can never pose as structure: control tokens are recognised only in what the template
// writes.
//
// A server that keeps the attention state of a conversation adds to it piece by piece:
//   ContextStart() + Ids(RenderSystem(text)) + Ids(RenderTurn(...))* +
//   Ids(RenderUserTurnAndPrompt(text)) + reply + ...
// Every piece starts with a control token, so that its ids do not depend on what stands before it,
// and the ids of all pieces together are those of the whole conversation (with a reply whose tokens
// are those of its text in place).
//
// Threads: immutable; concurrent calls allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/gguf/file.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvasir::tokenizer {

enum class Role { kSystem, kUser, kAssistant };
// "system", "user", "assistant".
std::string_view RoleName(Role role);
// Errors: InvalidArgument naming the role.
base::StatusOr<Role> ParseRole(std::string_view name);

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;
};

enum class SegmentKind { kTemplate, kContent };
struct Segment {
  std::string text;
  SegmentKind kind = SegmentKind::kTemplate;
  bool operator==(const Segment&) const = default;
};
// Neighbours are of different kinds, except that an empty content stays between its template
// segments.
using Segments = std::vector<Segment>;

enum class GenerationPrompt { kNo, kYes };
// How the tokens of an assistant's reply in the state end.
enum class ReplyEnd {
  kEndOfTurn,  // with end_of_turn()
  kOpen,       // without: cut by a limit, a stop string or the user
};

enum class ChatFamily {
  kChatMl,  // <|im_start|>role\n content <|im_end|>\n (SmolLM2, Qwen2, Qwen2.5, ...)
  kLlama3,  // <|start_header_id|>role<|end_header_id|>\n\n content <|eot_id|>
  kGemma,   // <start_of_turn>role\n content <end_of_turn>\n; no system message
};

class ChatTemplate {
 public:
  struct Layout;  // how a family writes a turn

  // `tokenizer` must outlive the result.
  // Errors: NotFound (the file has no tokenizer.chat_template), Unimplemented (a template of no
  // known family; the message
  //         says so and shows how it begins), FailedPrecondition (the vocabulary lacks a control
  //         token of the family).
  static base::StatusOr<ChatTemplate> Create(const gguf::File& file, const Tokenizer* tokenizer);
  // The same for the text of a template.
  static base::StatusOr<ChatTemplate> Create(std::string_view jinja, const Tokenizer* tokenizer);

  ChatFamily family() const { return family_; }
  // The system message written when a conversation brings none, if any.
  const std::optional<std::string>& default_system() const { return default_system_; }
  // The control token that ends a turn.
  int32_t end_of_turn() const { return end_of_turn_; }

  // A whole conversation, as the template writes it.
  // Errors: InvalidArgument (no messages; for Gemma a system message or roles that do not
  // alternate).
  base::StatusOr<Segments> Render(std::span<const ChatMessage> messages,
                                  GenerationPrompt prompt) const;

  // The pieces of a conversation, without ContextStart(). RenderSystem(nullopt) is the default
  // system message, or nothing when the family has none. Errors: Unimplemented (the family has no
  // system message).
  base::StatusOr<Segments> RenderSystem(std::optional<std::string_view> text) const;
  // One complete turn, its end included.
  Segments RenderTurn(Role role, std::string_view text) const;
  // The turn of the user and the start of the assistant's reply.
  Segments RenderUserTurnAndPrompt(std::string_view text) const;
  // What the template writes between end_of_turn() of a reply and the next turn ("\n", or nothing).
  std::string_view ReplyCloser() const;

  // The ids to append for one more user message and the start of the reply, after a state that ends
  // with the tokens of an assistant's reply: what still closes the reply, the turn, the prompt.
  std::vector<int32_t> Continuation(ReplyEnd end, std::string_view user_text) const;

  // The ids every context starts with: BOS exactly once where the vocabulary or the template asks
  // for it, else nothing.
  std::vector<int32_t> ContextStart() const;
  // The ids of segments, nothing added.
  std::vector<int32_t> Ids(std::span<const Segment> segments) const;
  // Ids of a whole conversation: those of its segments, with BOS before them when add_bos() asks
  // for one and the template wrote none.
  std::vector<int32_t> ContextIds(std::span<const Segment> segments) const;

 private:
  ChatTemplate(const Tokenizer* tokenizer, ChatFamily family)
      : tokenizer_(tokenizer), family_(family) {}

  const Tokenizer* tokenizer_;
  ChatFamily family_;
  const Layout* layout_ = nullptr;  // of the family
  std::optional<std::string> default_system_;
  int32_t end_of_turn_ = -1;
};

// The text of all segments.
std::string RenderedText(std::span<const Segment> segments);

}  // namespace kvasir::tokenizer

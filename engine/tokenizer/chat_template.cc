#include "engine/tokenizer/chat_template.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/check.h"
#include "engine/gguf/quote.h"
#include "engine/tokenizer/jinja_form.h"
#include "engine/tokenizer/utf8.h"

namespace kvasir::tokenizer {

using base::FailedPrecondition;
using base::InvalidArgument;
using base::NotFound;
using base::Status;
using base::StatusOr;
using base::Unimplemented;

// A turn is: start, role, header_end, content, end, closer.
struct ChatTemplate::Layout {
  std::string_view start;
  std::string_view header_end;
  std::string_view end;
  std::string_view closer;
  std::string_view assistant;     // its role name
  std::string_view header_token;  // the control token inside header_end, if any
  enum class Content { kAsIs, kTrimmed } content = Content::kAsIs;
  enum class Bos { kNone, kWritten } bos = Bos::kNone;
  // Gemma: the user speaks first, then the two in turn, and there is no system message.
  enum class Order { kAny, kAlternating } order = Order::kAny;
};

namespace {

using Layout = ChatTemplate::Layout;

constexpr Layout kChatMl = {.start = "<|im_start|>",
                            .header_end = "\n",
                            .end = "<|im_end|>",
                            .closer = "\n",
                            .assistant = "assistant",
                            .header_token = ""};
constexpr Layout kLlama3 = {.start = "<|start_header_id|>",
                            .header_end = "<|end_header_id|>\n\n",
                            .end = "<|eot_id|>",
                            .closer = "",
                            .assistant = "assistant",
                            .header_token = "<|end_header_id|>",
                            .content = Layout::Content::kTrimmed,
                            .bos = Layout::Bos::kWritten};
constexpr Layout kGemma = {.start = "<start_of_turn>",
                           .header_end = "\n",
                           .end = "<end_of_turn>",
                           .closer = "\n",
                           .assistant = "model",
                           .header_token = "",
                           .content = Layout::Content::kTrimmed,
                           .bos = Layout::Bos::kWritten,
                           .order = Layout::Order::kAlternating};

const Layout& LayoutOf(ChatFamily family) {
  switch (family) {
    case ChatFamily::kChatMl:
      return kChatMl;
    case ChatFamily::kLlama3:
      return kLlama3;
    case ChatFamily::kGemma:
      return kGemma;
  }
  base::CheckFailed(__FILE__, __LINE__, "a value of ChatFamily");
}

// The templates that are recognised, by JinjaForm::digest. chat_template_test.cc holds the text of
// each.
struct KnownTemplate {
  std::string_view digest;
  ChatFamily family;
};
constexpr std::array<KnownTemplate, 6> kKnownTemplates = {{
    // ChatML and nothing else.
    {"7459d34a63b3b46235a2173b30600053e33ce5403e1bcadf55ea096d1d6c6407", ChatFamily::kChatMl},
    // The same with add_generation_prompt set to false where it is not defined.
    {"1e5a6a60bb8b5a40e9f03ed099b30d8440de872a549ace5d54e1499f33066ad9", ChatFamily::kChatMl},
    // SmolLM2, Qwen2: a default system message before a conversation that brings none.
    {"37b38c601bc4ddcb59b3f31109609be3d42ee0d3054963b7c9b9afc805f39c21", ChatFamily::kChatMl},
    // Qwen2.5: the same, with tools.
    {"d0bed3e98365d18e9ca7c30c00a55efe5a802b19913008b3cacb320abbeb9031", ChatFamily::kChatMl},
    // Llama 3 (3.1 and later write a date and are others).
    {"6a1c570f731cd1d26dc015984f1079f0d5657c5c04a2bfc4ecb86b01ba1986dd", ChatFamily::kLlama3},
    // Gemma, Gemma 2.
    {"98edf85cef444eb48166718d9560f311618bfbb482a50112775146533ed064d5", ChatFamily::kGemma},
}};

// Python's str.strip(), which is what Jinja's trim does.
std::string_view Trim(std::string_view text) {
  size_t begin = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = ReadUtf8(text.substr(at));
    const bool valid = c.kind == Utf8Char::Kind::kValid;
    const bool space = valid && (u_isUWhiteSpace(static_cast<UChar32>(c.value)) ||
                                 (c.value >= 0x1C && c.value <= 0x1F));
    if (!space) begin = std::min(begin, at);
    at += c.bytes;
    if (!space) end = at;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// Puts segments together: neighbouring template text becomes one segment, content stays by itself.
class Writer {
 public:
  explicit Writer(const Layout& layout) : layout_(layout) {}

  void Template(std::string_view text) {
    if (text.empty()) return;
    if (segments_.empty() || segments_.back().kind == SegmentKind::kContent)
      segments_.push_back({"", SegmentKind::kTemplate});
    segments_.back().text += text;
  }
  void Header(Role role) {
    Template(layout_.start);
    Template(role == Role::kAssistant ? layout_.assistant : RoleName(role));
    Template(layout_.header_end);
  }
  void Turn(Role role, std::string_view text) {
    Header(role);
    const bool trims = layout_.content == Layout::Content::kTrimmed;
    segments_.push_back({std::string(trims ? Trim(text) : text), SegmentKind::kContent});
    EndTurn();
  }
  // The message of the template itself.
  void DefaultSystem(std::string_view text) {
    Header(Role::kSystem);
    Template(text);
    EndTurn();
  }
  void EndTurn() {
    Template(layout_.end);
    Template(layout_.closer);
  }
  Segments Finish() { return std::move(segments_); }

 private:
  const Layout& layout_;
  Segments segments_;
};

Status CheckAlternating(std::span<const ChatMessage> messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    const Role expected = i % 2 == 0 ? Role::kUser : Role::kAssistant;
    if (messages[i].role != expected)
      return InvalidArgument("message {}: role {}, this model's template allows only {} there", i,
                             RoleName(messages[i].role), RoleName(expected));
  }
  return base::OkStatus();
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
  }
  base::CheckFailed(__FILE__, __LINE__, "a value of Role");
}

StatusOr<Role> ParseRole(std::string_view name) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant})
    if (name == RoleName(role)) return role;
  return InvalidArgument("role {}: not one of system, user, assistant", gguf::Quote(name));
}

StatusOr<ChatTemplate> ChatTemplate::Create(const gguf::File& file, const Tokenizer* tokenizer) {
  if (!file.Has("tokenizer.chat_template"))
    return NotFound("tokenizer.chat_template: the model file has no chat template");
  KVASIR_ASSIGN_OR_RETURN(const std::string_view jinja, file.GetString("tokenizer.chat_template"));
  return Create(jinja, tokenizer);
}

StatusOr<ChatTemplate> ChatTemplate::Create(std::string_view jinja, const Tokenizer* tokenizer) {
  const StatusOr<JinjaForm> form = FormOf(jinja);
  if (!form.ok()) return base::Annotate(form.status(), "tokenizer.chat_template");
  const std::string digest = form->digest.Hex();
  const auto* known = std::find_if(kKnownTemplates.begin(), kKnownTemplates.end(),
                                   [&](const KnownTemplate& k) { return k.digest == digest; });
  if (known == kKnownTemplates.end())
    return Unimplemented(
        "tokenizer.chat_template: not a template this version knows (form {}); it begins {}",
        digest, gguf::Quote(jinja));
  ChatTemplate result(tokenizer, known->family);
  const Layout& layout = LayoutOf(known->family);
  for (const std::string_view text : {layout.start, layout.header_token, layout.end})
    if (!text.empty() && !tokenizer->FindControl(text))
      return FailedPrecondition(
          "tokenizer.chat_template: uses {}, which is no control token of the vocabulary", text);
  result.layout_ = &layout;
  result.default_system_ = form->default_system;
  result.end_of_turn_ = *tokenizer->FindControl(layout.end);
  return result;
}

StatusOr<Segments> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                        GenerationPrompt prompt) const {
  if (messages.empty()) return InvalidArgument("a conversation without messages");
  if (layout_->order == Layout::Order::kAlternating)
    KVASIR_RETURN_IF_ERROR(CheckAlternating(messages));
  Writer writer(*layout_);
  if (layout_->bos == Layout::Bos::kWritten && tokenizer_->bos())
    writer.Template(tokenizer_->TokenBytes(*tokenizer_->bos()));
  if (messages[0].role != Role::kSystem && default_system_) writer.DefaultSystem(*default_system_);
  for (const ChatMessage& message : messages) writer.Turn(message.role, message.content);
  if (prompt == GenerationPrompt::kYes) writer.Header(Role::kAssistant);
  return writer.Finish();
}

StatusOr<Segments> ChatTemplate::RenderSystem(std::optional<std::string_view> text) const {
  Writer writer(*layout_);
  if (!text) {
    if (default_system_) writer.DefaultSystem(*default_system_);
    return writer.Finish();
  }
  if (layout_->order == Layout::Order::kAlternating)
    return Unimplemented("this model's chat template has no system message");
  writer.Turn(Role::kSystem, *text);
  return writer.Finish();
}

Segments ChatTemplate::RenderTurn(Role role, std::string_view text) const {
  Writer writer(*layout_);
  writer.Turn(role, text);
  return writer.Finish();
}

Segments ChatTemplate::RenderUserTurnAndPrompt(std::string_view text) const {
  Writer writer(*layout_);
  writer.Turn(Role::kUser, text);
  writer.Header(Role::kAssistant);
  return writer.Finish();
}

std::string_view ChatTemplate::ReplyCloser() const { return layout_->closer; }

std::vector<int32_t> ChatTemplate::Continuation(ReplyEnd end, std::string_view user_text) const {
  Writer writer(*layout_);
  if (end == ReplyEnd::kOpen) writer.Template(layout_->end);
  writer.Template(layout_->closer);
  writer.Turn(Role::kUser, user_text);
  writer.Header(Role::kAssistant);
  return Ids(writer.Finish());
}

std::vector<int32_t> ChatTemplate::ContextStart() const {
  const std::optional<int32_t> bos = tokenizer_->bos();
  const bool wanted = tokenizer_->add_bos() || layout_->bos == Layout::Bos::kWritten;
  // Where the token that starts a turn is BOS as well (SmolLM2), the first turn brings it.
  if (!bos || !wanted || bos == tokenizer_->FindControl(layout_->start)) return {};
  return {*bos};
}

std::vector<int32_t> ChatTemplate::Ids(std::span<const Segment> segments) const {
  std::vector<TextPart> parts;
  for (const Segment& segment : segments)
    parts.push_back({segment.text, segment.kind == SegmentKind::kTemplate
                                       ? SpecialTokens::kParse
                                       : SpecialTokens::kAsText});
  return tokenizer_->EncodeParts(parts);
}

std::vector<int32_t> ChatTemplate::ContextIds(std::span<const Segment> segments) const {
  std::vector<int32_t> ids = Ids(segments);
  const std::vector<int32_t> start = ContextStart();
  if (!start.empty() && (ids.empty() || ids.front() != start.front()))
    ids.insert(ids.begin(), start.begin(), start.end());
  return ids;
}

std::string RenderedText(std::span<const Segment> segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

}  // namespace kvasir::tokenizer

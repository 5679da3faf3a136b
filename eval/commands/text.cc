// tokenize and render: what needs a vocabulary but no tensors.
#include <cstdio>
#include <memory>

#include "engine/tokenizer/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "eval/commands/commands.h"
#include "eval/commands/input.h"

namespace kvasir::eval {
namespace {

struct TextFlags {
  std::string model, input;

  void AddTo(CLI::App& app, const char* what) {
    app.add_option("--model", model, "GGUF file; its tensors are not read")->required();
    app.add_option("--input", input, what)->required();
  }
};

void Print(const nlohmann::json& line) { fmt::print("{}\n", line.dump()); }

base::Status Tokenize(const TextFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(const auto file, gguf::File::Open(flags.model));
  KVASIR_ASSIGN_OR_RETURN(const auto tokenizer, tokenizer::Tokenizer::Create(*file));
  KVASIR_ASSIGN_OR_RETURN(const auto cases, ReadJsonLines(flags.input));
  for (const auto& item : cases) {
    std::string text = item.value("text", "");
    if (item.contains("bytes_hex")) {
      KVASIR_ASSIGN_OR_RETURN(text, FromHex(item.value("bytes_hex", "")));
    }
    const auto special = item.value("parse_special", false) ? tokenizer::SpecialTokens::kParse
                                                            : tokenizer::SpecialTokens::kAsText;
    Print({{"name", item.value("name", "")}, {"ids", tokenizer->Encode(text, special)}});
  }
  return base::OkStatus();
}

base::StatusOr<std::vector<tokenizer::ChatMessage>> Messages(const nlohmann::json& item) {
  std::vector<tokenizer::ChatMessage> messages;
  for (const auto& message : item.value("messages", nlohmann::json::array())) {
    if (!message.is_object()) return base::InvalidArgument("a message is no JSON object");
    KVASIR_ASSIGN_OR_RETURN(const auto role, tokenizer::ParseRole(message.value("role", "")));
    messages.push_back({.role = role, .content = message.value("content", "")});
  }
  return messages;
}

base::Status Render(const TextFlags& flags) {
  KVASIR_ASSIGN_OR_RETURN(const auto file, gguf::File::Open(flags.model));
  KVASIR_ASSIGN_OR_RETURN(const auto tokenizer, tokenizer::Tokenizer::Create(*file));
  KVASIR_ASSIGN_OR_RETURN(const auto chat, tokenizer::ChatTemplate::Create(*file, tokenizer.get()));
  KVASIR_ASSIGN_OR_RETURN(const auto cases, ReadJsonLines(flags.input));
  for (const auto& item : cases) {
    KVASIR_ASSIGN_OR_RETURN(const auto messages, Messages(item));
    const auto prompt = item.value("add_generation_prompt", true)
                            ? tokenizer::GenerationPrompt::kYes
                            : tokenizer::GenerationPrompt::kNo;
    KVASIR_ASSIGN_OR_RETURN(const auto segments, chat.Render(messages, prompt));
    Print({{"name", item.value("name", "")},
           {"rendered", tokenizer::RenderedText(segments)},
           {"ids", chat.Ids(segments)}});
  }
  return base::OkStatus();
}

}  // namespace

void AddTokenize(CLI::App& app, base::Status& status) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App* command =
      app.add_subcommand("tokenize", "token ids of texts, one JSON line each; no BOS added");
  flags->AddTo(*command, "JSON lines with name, text or bytes_hex, parse_special");
  command->callback([flags, &status] { status = Tokenize(*flags); });
}

void AddRender(CLI::App& app, base::Status& status) {
  auto flags = std::make_shared<TextFlags>();
  CLI::App* command =
      app.add_subcommand("render", "text and token ids of conversations, one JSON line each");
  flags->AddTo(*command, "JSON lines with name, messages, add_generation_prompt");
  command->callback([flags, &status] { status = Render(*flags); });
}

}  // namespace kvasir::eval

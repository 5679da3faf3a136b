#include "router/client/next_step.h"

namespace kvasir::client {
namespace {

// `name` up to the slash that ends its part after `collection`; "" when it has none.
std::string Part(const std::string& name, const std::string& collection) {
  const size_t begin = name.find(collection);
  if (begin == std::string::npos) return "";
  const size_t from = begin + collection.size();
  return name.substr(from, name.find('/', from) - from);
}

// The command that lists what there is instead of the missing resource; "" when there is none.
std::string CommandThatLists(const std::string& asked) {
  if (!asked.starts_with("users/")) return "";
  const std::string user = Part(asked, "users/");
  const std::string kvasir = user == "me" ? "kvasir" : "kvasir --user " + user;
  if (!Part(asked, "/turns/").empty()) {
    return kvasir + " session show " + Part(asked, "/sessions/");
  }
  if (!Part(asked, "/sessions/").empty()) return kvasir + " session list";
  if (!Part(asked, "/memories/").empty()) return kvasir + " memory list";
  return "";
}

std::string Advice(const std::string& reason, const std::string& asked) {
  if (reason == "SESSION_CLOSED") {
    return "; begin a new one: `kvasir chat` without --session, or /new in a chat";
  }
  if (reason != "RESOURCE_NOT_FOUND" || asked.empty()) return "";
  const std::string command = CommandThatLists(asked);
  if (!command.empty()) return fmt::format(": {}; `{}` lists those there are", asked, command);
  if (asked.starts_with("users/")) {
    return fmt::format(": {}; a user begins with the first message, and --user says whose", asked);
  }
  return ": " + asked;
}

}  // namespace

base::Status WithNextStep(const base::Status& status, const std::string& asked) {
  const std::string reason = base::Reason(status);
  const std::string advice = Advice(reason, asked);
  if (status.ok() || advice.empty()) return status;
  const base::Status said(status.code(), std::string(base::ToStd(status.message())) + advice);
  return base::WithField(base::WithReason(said, reason), base::Field(status));
}

}  // namespace kvasir::client

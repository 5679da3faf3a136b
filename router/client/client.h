// Client: what every command works with, and the calls that several commands share.
#pragma once

#include <string>

#include "router/client/connection.h"
#include "router/client/interrupt.h"
#include "router/client/line_reader.h"
#include "router/client/output.h"

namespace kvasir::client {

struct Client {
  Connection& connection;
  Output& output;
  LineReader& input;
  bool interactive = false;        // `input` is a terminal: the user can be asked
  Interrupt* interrupt = nullptr;  // null where Ctrl-C ends the program
  std::string user = "me";

  std::string UserName() const { return "users/" + user; }
  // A full name as it is; an id as that of the user's session or memory.
  std::string SessionName(const std::string& name_or_id) const;
  std::string MemoryName(const std::string& name_or_id) const;
  // "SESSION/N" or a full name. Errors: InvalidArgument (neither).
  base::StatusOr<std::string> TurnName(const std::string& name) const;
};

// All pages of a list. `request` is that of the first page, `append` takes each answer.
template <typename Stub, typename Request, typename Response, typename Append>
base::Status ForEachPage(Connection& connection, Stub& stub,
                         grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                         Request request, Append append) {
  request.set_page_size(200);
  while (true) {
    KVASIR_ASSIGN_OR_RETURN(Response page, connection.Call(stub, method, request));
    request.set_page_token(page.next_page_token());
    append(page);
    if (request.page_token().empty()) return base::OkStatus();
  }
}

// Waits until the operation is done, with a progress line; an interrupt ends the wait only.
// Errors: what the operation failed with; Cancelled (interrupt: it goes on in the server).
base::StatusOr<v1::Operation> WaitUntilDone(Client& client, v1::Operation operation,
                                            const std::string& what);

// CompactSession, then WaitUntilDone.
base::StatusOr<v1::Operation> CloseSession(Client& client, const std::string& session);
// The memory that closing made; empty when there is none.
std::string MemoryOf(const v1::Operation& closed);

}  // namespace kvasir::client

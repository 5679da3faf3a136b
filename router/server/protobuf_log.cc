#include "router/server/protobuf_log.h"

#include <google/protobuf/stubs/logging.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace kvasir::server {
namespace {

// libprotobuf's handler is a plain function, so its count cannot be a member.
std::atomic<int64_t> dropped_lines = 0;

void Drop(google::protobuf::LogLevel level, const char* file, int line, const std::string&) {
  ++dropped_lines;
  if (level == google::protobuf::LOGLEVEL_FATAL) {
    std::fprintf(stderr, "libprotobuf: fatal fault at %s:%d\n", file, line);
  }
}

}  // namespace

void DropProtobufLog() { google::protobuf::SetLogHandler(&Drop); }
int64_t DroppedProtobufLines() { return dropped_lines; }

}  // namespace kvasir::server

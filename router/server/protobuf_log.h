// What libprotobuf has to say: it prints a line on stderr for every malformed request, which any
// client can cause and which may hold parts of it.
#pragma once

#include <cstdint>

namespace kvasir::server {

// From now on, in the whole process, lines of libprotobuf are counted and dropped; of one that ends
// the process its place in the library is printed. Call it before other threads start.
void DropProtobufLog();

// Lines dropped so far. Any thread.
int64_t DroppedProtobufLines();

}  // namespace kvasir::server

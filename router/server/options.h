// Options: the whole configuration of kvasird, validated.
//
// Every member is a key of the configuration file and, with '-' for '_', a flag (option_table.h);
// a flag wins over the file. The stated bounds are enforced where the value is read.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::server {

struct Options {
  // What is served.
  std::string model;  // path of the GGUF file; required
  std::string data;   // folder of the store, made when missing; required
  std::string device = "cpu";
  std::string role = "all";
  int64_t threads = 0;  // threads that compute, 0 to 256; 0: one per core
  int64_t context_tokens =
      0;  // most tokens of a sequence, 0 to 1,048,576; 0: what the model allows

  // Where it listens.
  std::string listen = "127.0.0.1:7437";  // HOST:PORT on the loopback; port 0: a free one
  std::string metrics_listen;             // HOST:PORT of the metrics page; empty: none

  // Bounds on a client.
  int64_t request_bytes_max = 4 << 20;       // 64 KiB to 64 MiB
  int64_t streams_per_connection_max = 100;  // 1 to 10,000
  int64_t stream_buffer_events_max = 256;    // events kept for a slow reader, 16 to 65,536
  int64_t slow_reader_s_max = 60;            // a reader that takes nothing for so long is cancelled
  int64_t reply_grace_s = 30;                // a lost stream with a request_id goes on, 0 to 3600

  // Bounds on the work.
  int64_t running_turns_max = 16;                    // 1 to 1024
  int64_t queued_turns_max = 256;                    // turns that wait, 0 to 65,536
  int64_t handler_threads = 8;                       // requests that wait for the disk, 1 to 256
  int64_t kv_bytes_max = int64_t{2} << 30;           // pages of running sequences, from 1 MiB
  int64_t state_cache_bytes_max = int64_t{1} << 30;  // stored states kept in RAM, from 0
  int64_t mounts_max = 8;                            // memories in front of a session, 0 to 64
  int64_t mount_slots_max = 4096;                    // slots of them all, 0 to 1,048,576
  int64_t mounts_per_turn_max = 3;                   // of them, new in one turn, 0 to 64
  int64_t mount_slack_tokens = 2048;      // positions kept for later mounts, 0 to 1,048,576
  int64_t inline_build_tokens_max = 512;  // a state so short is built before the turn, 0 to 65,536
  int64_t session_idle_close_s = 900;     // an idle session's memory is made, 1 to 2,592,000
  int64_t drain_s = 20;                   // time that running turns get at the end, 0 to 3600
};

}  // namespace kvasir::server

#include "router/server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>

#include "engine/base/check.h"
#include "router/server/address.h"

namespace kvasir::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kTtftBuckets = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60};
const Histogram::BucketBoundaries kItlBuckets = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
const Histogram::BucketBoundaries kRestoreBuckets = {0.0005, 0.001, 0.002, 0.005, 0.01,
                                                     0.02,   0.05,  0.1,   0.5,   2};

Family<Counter>& Counters(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry);
}

Family<Histogram>& Histograms(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry);
}

Gauge& OneGauge(prometheus::Registry* registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry).Add({});
}

}  // namespace

struct Metrics::State {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  prometheus::Registry* r = registry.get();

  Family<Counter>& requests =
      Counters(r, "kvasir_requests_total", "Calls that ended, by method and gRPC code.");
  Family<Counter>& prompt_tokens = Counters(r, "kvasir_prompt_tokens_total",
                                            "Prompt tokens by source: computed, session, memory.");
  Counter& computed_tokens = prompt_tokens.Add({{"source", "computed"}});
  Counter& session_tokens = prompt_tokens.Add({{"source", "session"}});
  Counter& memory_tokens = prompt_tokens.Add({{"source", "memory"}});
  Counter& output_tokens = Counters(r, "kvasir_output_tokens_total", "Tokens of replies.").Add({});
  Counter& hits = Counters(r, "kvasir_memory_hits_total", "Memories mounted.").Add({});
  Family<Counter>& misses =
      Counters(r, "kvasir_memory_misses_total", "Candidates that were not mounted, by reason.");
  Family<Counter>& lost_streams = Counters(
      r, "kvasir_lost_streams_total", "Streams of Chat that ended before their turn, by reason.");
  Histogram& ttft = Histograms(r, "kvasir_ttft_seconds", "Seconds to the first token of a reply.")
                        .Add({}, kTtftBuckets);
  Histogram& itl = Histograms(r, "kvasir_itl_seconds", "Seconds between two tokens of a reply.")
                       .Add({}, kItlBuckets);
  Family<Histogram>& restore =
      Histograms(r, "kvasir_restore_seconds", "Seconds to restore a memory, by tier.");

  Gauge& running_turns = OneGauge(r, "kvasir_running_turns", "Turns that are being made.");
  Gauge& queue_depth = OneGauge(r, "kvasir_queue_depth", "Turns that wait for their first step.");
  Gauge& pending_jobs = OneGauge(r, "kvasir_pending_jobs", "Background jobs that are not done.");
  Gauge& erasure_backlog = OneGauge(r, "kvasir_erasure_backlog", "Erasures that are not done.");
  Family<Gauge>& state_bytes = prometheus::BuildGauge()
                                   .Name("kvasir_state_bytes")
                                   .Help("Bytes of attention states, by tier.")
                                   .Register(*r);
  Gauge& ram_bytes = state_bytes.Add({{"tier", "ram"}});
  Gauge& disk_bytes = state_bytes.Add({{"tier", "disk"}});
  Gauge& kv_bytes =
      OneGauge(r, "kvasir_kv_used_bytes", "Bytes of key-value pages of running sequences.");

  Gauge& dropped_log_lines = OneGauge(r, "kvasir_dropped_log_lines",
                                      "Lines of libraries that were not logged since the start.");

  std::unique_ptr<prometheus::Exposer> exposer;
};

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

void Metrics::RecordCall(std::string_view method, std::string_view code) {
  state_->requests.Add({{"method", std::string(method)}, {"code", std::string(code)}}).Increment();
}

void Metrics::RecordTurn(const TurnFigures& figures) {
  state_->computed_tokens.Increment(static_cast<double>(figures.computed_tokens));
  state_->session_tokens.Increment(static_cast<double>(figures.session_cached_tokens));
  state_->memory_tokens.Increment(static_cast<double>(figures.memory_tokens));
  state_->output_tokens.Increment(static_cast<double>(figures.output_tokens));
  if (figures.output_tokens > 0) state_->ttft.Observe(figures.ttft_s);
}

void Metrics::RecordInterTokenLatency(double seconds) { state_->itl.Observe(seconds); }

void Metrics::RecordHit(std::string_view tier, double restore_s) {
  state_->hits.Increment();
  state_->restore.Add({{"tier", std::string(tier)}}, kRestoreBuckets).Observe(restore_s);
}

void Metrics::RecordMiss(std::string_view reason) {
  state_->misses.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::RecordLostStream(std::string_view reason) {
  state_->lost_streams.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::SetLevels(const Levels& levels) {
  state_->running_turns.Set(static_cast<double>(levels.running_turns));
  state_->queue_depth.Set(static_cast<double>(levels.queued_turns));
  state_->pending_jobs.Set(static_cast<double>(levels.pending_jobs));
  state_->erasure_backlog.Set(static_cast<double>(levels.pending_erasures));
  state_->ram_bytes.Set(static_cast<double>(levels.state_ram_bytes));
  state_->disk_bytes.Set(static_cast<double>(levels.state_disk_bytes));
  state_->kv_bytes.Set(static_cast<double>(levels.kv_used_bytes));
  state_->dropped_log_lines.Set(static_cast<double>(levels.dropped_log_lines));
}

base::Status Metrics::Expose(const std::string& address) {
  KVASIR_CHECK(state_->exposer == nullptr);
  KVASIR_ASSIGN_OR_RETURN(const Address parsed, ParseAddress(address));
  try {
    state_->exposer = std::make_unique<prometheus::Exposer>(Format(parsed), 1);
    state_->exposer->RegisterCollectable(state_->registry, "/metrics");
  } catch (const std::exception& error) {
    return base::Unavailable("cannot serve metrics on {}: {}", address, error.what());
  }
  return base::OkStatus();
}

std::string Metrics::Page() const {
  return prometheus::TextSerializer().Serialize(state_->registry->Collect());
}

}  // namespace kvasir::server

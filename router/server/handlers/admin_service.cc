#include "router/server/handlers/admin_service.h"

#include "engine/model/config.h"
#include "router/server/chat_turns.h"
#include "router/server/handlers/to_proto.h"
#include "router/server/resource_names.h"
#include "router/server/version.h"

namespace kvasir::server {
namespace {

constexpr size_t kFindingsShownMax = 100;

void Describe(const Served& served, v1::ServerInfo* info) {
  const runtime::Engine& engine = served.host->engine();
  info->set_version(kVersion);
  info->set_model(FormatModel(served.host->name()));
  info->set_model_id(engine.model_id().digest.Hex());
  info->set_architecture(
      std::string(model::Name(served.host->loaded().model->config().architecture)));
  info->set_context_tokens(static_cast<int32_t>(engine.context_tokens_max()));
  info->set_build_id(engine.build_id().text);
  info->set_threads(served.threads);
  *info->mutable_start_time() = ToTimestamp(served.start_us);
  info->set_memory_supported(true);
}

void Count(const Served& served, v1::Stats* stats) {
  const runtime::Engine::Stats engine = served.host->engine().stats();
  const service::TierStats tier = served.tier->GetStats();
  const ChatTotals& totals = served.turns->totals();
  stats->set_users(tier.users);
  stats->set_sessions(tier.sessions);
  stats->set_memories(tier.memories);
  stats->set_running_turns(engine.requests_running);
  stats->set_queued_turns(engine.requests_queued);
  stats->set_pending_jobs(tier.jobs_pending);
  stats->set_finished_turns(totals.finished_turns);
  stats->set_computed_tokens(totals.computed_tokens);
  stats->set_session_cached_tokens(totals.session_cached_tokens);
  stats->set_memory_tokens(totals.memory_tokens);
  stats->set_output_tokens(totals.output_tokens);
  stats->set_state_ram_bytes(static_cast<int64_t>(tier.ram_cache_bytes));
  stats->set_state_disk_bytes(static_cast<int64_t>(tier.state_bytes));
  stats->set_kv_used_bytes(static_cast<int64_t>(engine.kv_bytes_used));
  stats->set_kv_total_bytes(static_cast<int64_t>(engine.kv_bytes_max));
}

}  // namespace

grpc::ServerUnaryReactor* AdminHandlers::GetServerInfo(grpc::CallbackServerContext* rpc,
                                                       const v1::GetServerInfoRequest* request,
                                                       v1::ServerInfo* response) {
  return context_.Run(rpc, "AdminService/GetServerInfo", HandlerContext::Effect::kReads, request,
                      [response](const Served& served) -> base::Status {
                        Describe(served, response);
                        return base::OkStatus();
                      });
}

grpc::ServerUnaryReactor* AdminHandlers::GetStats(grpc::CallbackServerContext* rpc,
                                                  const v1::GetStatsRequest* request,
                                                  v1::Stats* response) {
  return context_.Run(rpc, "AdminService/GetStats", HandlerContext::Effect::kReads, request,
                      [response](const Served& served) -> base::Status {
                        Count(served, response);
                        return base::OkStatus();
                      });
}

grpc::ServerUnaryReactor* AdminHandlers::CheckConsistency(
    grpc::CallbackServerContext* rpc, const v1::CheckConsistencyRequest* request,
    v1::CheckConsistencyResponse* response) {
  return context_.Run(rpc, "AdminService/CheckConsistency", HandlerContext::Effect::kReads, request,
                      [response](const Served& served) -> base::Status {
                        KVASIR_ASSIGN_OR_RETURN(
                            const service::ConsistencyReport report,
                            served.tier->CheckConsistency(service::Repair::kNo));
                        response->set_clean(report.findings.empty());
                        response->set_finding_count(static_cast<int64_t>(report.findings.size()));
                        response->set_checked_records(report.records);
                        for (const service::Finding& finding : report.findings) {
                          if (response->findings_size() == static_cast<int>(kFindingsShownMax))
                            break;
                          v1::ConsistencyFinding* one = response->add_findings();
                          one->set_kind(finding.kind);
                          one->set_detail(finding.detail);
                        }
                        return base::OkStatus();
                      });
}

}  // namespace kvasir::server

#include "eval/commands/input.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "engine/base/file.h"

namespace kvasir::eval {
namespace {

constexpr size_t kInputBytesMax = size_t{1} << 30;
constexpr int64_t kChunkRows = 256;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

base::StatusOr<std::string> FromHex(const std::string& hex) {
  if (hex.size() % 2 != 0)
    return base::InvalidArgument("{} hexadecimal digits make no whole bytes", hex.size());
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]), low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return base::InvalidArgument("no hexadecimal digit at {}", i);
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

base::StatusOr<std::vector<nlohmann::json>> ReadJsonLines(const std::string& path) {
  KVASIR_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kInputBytesMax));
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
      return base::InvalidArgument("{} line {} is no JSON object", path, number);
    lines.push_back(std::move(json));
  }
  return lines;
}

base::StatusOr<std::vector<int32_t>> ReadTokens(const std::string& path) {
  KVASIR_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kInputBytesMax));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json list = json.is_object() ? json.value("tokens", nlohmann::json()) : json;
  if (!list.is_array() || list.empty()) {
    return base::InvalidArgument(
        "{} holds no token ids: a JSON list, or an object with \"tokens\", is read", path);
  }
  std::vector<int32_t> tokens;
  for (const auto& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      return base::InvalidArgument("{}: entry {} is no token id", path, tokens.size());
    }
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

void ModelFlags::AddTo(CLI::App& app) {
  app.add_option("--model", model, "GGUF file")->required();
  app.add_option("--tokens", tokens, "JSON file: a list of ids, or an object with \"tokens\"")
      ->required();
  app.add_option("--path", path, "fast: int8 activations, f16 KV; float: float weights and KV")
      ->check(CLI::IsMember({"fast", "float"}))
      ->capture_default_str();
  app.add_option("--cpu", cpu, "instruction set; default: the strongest of this CPU")
      ->check(CLI::IsMember({"generic", "avx2", "avx512_vnni"}));
  app.add_option("-t,--threads", threads, "0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

base::StatusOr<runtime::LoadedModel> ModelFlags::Load() const {
  runtime::LoadOptions options;
  options.path = model;
  options.threads = threads;
  options.precision = path == "float" ? kernels::Precision::kFloat : kernels::Precision::kFast;
  options.model = {.rows_max = kChunkRows, .logits_rows_max = 1, .positions_max = 0};
  for (const auto candidate :
       {kernels::CpuPath::kGeneric, kernels::CpuPath::kAvx2, kernels::CpuPath::kAvx512Vnni}) {
    if (cpu == kernels::Name(candidate)) options.cpu_path = candidate;
  }
  return runtime::LoadedModel::Load(options, nullptr);
}

base::Status RunRows(runtime::LoadedModel& loaded, model::Tail& tail,
                     const std::vector<int32_t>& tokens, const std::vector<int64_t>& wanted,
                     const std::function<void(int64_t, std::span<const float>)>& row,
                     model::ForwardObserver* observer) {
  std::vector<float> logits(loaded.model->config().n_vocab);
  size_t done = 0;
  const int64_t count = static_cast<int64_t>(tokens.size());
  for (int64_t begin = 0; begin < count;) {
    int64_t end = std::min(begin + kChunkRows, count);
    const bool wants = done < wanted.size() && wanted[done] < end;
    if (wants) end = wanted[done] + 1;
    KVASIR_RETURN_IF_ERROR(tail.Reserve(tail.end() + end - begin));
    const model::SequenceStep step = {.tokens = std::span(tokens).subspan(begin, end - begin),
                                      .tail = &tail,
                                      .mounts = {},
                                      .logits_rows = wants ? 1 : 0};
    KVASIR_RETURN_IF_ERROR(loaded.model->Forward({&step, 1},
                                                 std::span(logits).first(wants ? logits.size() : 0),
                                                 nullptr, end == count ? observer : nullptr));
    if (wants) row(wanted[done++], logits);
    begin = end;
  }
  return base::OkStatus();
}

double LogSumExp(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(x - top);
  return top + std::log(sum);
}

int32_t ArgMax(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace kvasir::eval

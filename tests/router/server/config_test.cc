// Configuration: file and flags as a user writes them; goal: every key works both ways, and what is
// wrong is named.
#include "router/server/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "router/names/nearest_name.h"
#include "router/server/option_table.h"

namespace kvasir::server {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& toml) {
  Options options;
  return std::string(base::ToStd(ApplyConfigText(toml, "kvasird.toml", &options).message()));
}

std::string ErrorOf(std::vector<std::string> flags) {
  const auto result = ParseCommandLine(flags, "1.2.3");
  return result.ok() ? "" : std::string(base::ToStd(result.status().message()));
}

// A value of the key that differs from its default, as TOML and as text of a flag.
std::string OtherValue(const OptionKey& key) {
  if (std::holds_alternative<int64_t Options::*>(key.member)) return fmt::format("{}", key.min + 1);
  return key.choices.empty() ? "127.0.0.1:1" : std::string(key.choices);
}

TEST(Config, EveryKeyIsReadFromTheFileAndFromItsFlagAlike) {
  for (const OptionKey& key : OptionKeys()) {
    const bool number = std::holds_alternative<int64_t Options::*>(key.member);
    const std::string value = OtherValue(key);
    Options from_file;
    const std::string toml =
        fmt::format("{} = {}", key.name, number ? value : fmt::format("\"{}\"", value));
    ASSERT_TRUE(ApplyConfigText(toml, "f", &from_file).ok()) << toml;
    const auto line = ParseCommandLine({"--model", "m", "--data", "d", FlagOf(key), value}, "1");
    if (key.name == "model" || key.name == "data") continue;  // given twice: a usage error
    ASSERT_TRUE(line.ok()) << key.name << " " << line.status();
    std::visit([&](auto member) { EXPECT_EQ(from_file.*member, line->options.*member); },
               key.member);
  }
}

TEST(Config, EveryNumberIsRefusedBelowAndAboveItsBounds) {
  for (const OptionKey& key : OptionKeys()) {
    if (!std::holds_alternative<int64_t Options::*>(key.member)) continue;
    for (const std::string& value :
         {fmt::format("{}", key.min - 1), fmt::format("{}", key.max + 1)}) {
      const std::string expected =
          fmt::format("{} is {}, allowed are {} to {}", key.name, value, key.min, key.max);
      EXPECT_THAT(ErrorOf(fmt::format("{} = {}", key.name, value)), HasSubstr(expected));
      EXPECT_THAT(
          ErrorOf(std::vector<std::string>{FlagOf(key), value, "--model", "m", "--data", "d"}),
          HasSubstr(expected));
    }
  }
}

TEST(Config, DefaultsAreWithinTheirBounds) {
  const Options defaults;
  for (const OptionKey& key : OptionKeys()) {
    const auto* member = std::get_if<int64_t Options::*>(&key.member);
    if (member == nullptr) continue;
    EXPECT_GE(defaults.**member, key.min) << key.name;
    EXPECT_LE(defaults.**member, key.max) << key.name;
  }
}

TEST(Config, TablesArraysAndDatesAreRefusedByPlaceWhateverTheirForm) {
  EXPECT_EQ(ErrorOf("threads = 1\n [[["),
            "kvasird.toml:2:2: tables, arrays and dates are not allowed");
  for (const char* text : {"[a]", "[{", "a=[ 1[_0x", "T=[[}", "\"a\"=[[_", "'#' = [[", "a = {b={",
                           "T=1979-05-27 1 #"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("tables, arrays and dates are not allowed")) << text;
  }
  EXPECT_EQ(ErrorOf("model = \"[a] \\\" {\" # [[\n'data' = '[{\\'"), "");
}

TEST(Config, AnUnknownKeyNamesPlaceAndNearestKey) {
  EXPECT_EQ(ErrorOf("model = \"m\"\nlisten_metrics = 1"),
            "unknown key 'listen_metrics' in kvasird.toml:2:1");
  EXPECT_EQ(ErrorOf("metrics_lissen = \"x\""),
            "unknown key 'metrics_lissen' in kvasird.toml:1:1; did you mean 'metrics_listen'?");
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"--tread=2"}),
              HasSubstr("did you mean '--threads'?"));
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"serve"}), HasSubstr("unknown argument 'serve'"));
}

TEST(Config, WrongTypesAndBrokenTomlAreNamedWithTheirPlace) {
  EXPECT_THAT(ErrorOf("threads = \"2\""), HasSubstr("kvasird.toml:1:1: threads is a number"));
  EXPECT_THAT(ErrorOf("threads = 2.5"), HasSubstr("threads must be"));
  EXPECT_THAT(ErrorOf("listen = 7437"), HasSubstr("listen is a text"));
  EXPECT_THAT(ErrorOf("[server]\nlisten = \"x\""),
              HasSubstr("kvasird.toml:1:1: tables, arrays and dates are not"));
  EXPECT_THAT(ErrorOf("threads = = 2"), HasSubstr("kvasird.toml:1:"));
  EXPECT_THAT(ErrorOf("threads = 1\nthreads = 2"), HasSubstr("kvasird.toml:2:"));
  EXPECT_THAT(ErrorOf("device = \"tpu\""), HasSubstr("device is 'tpu', this build knows: cpu"));
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"--threads", "two"}), HasSubstr("threads is 'two'"));
}

TEST(Config, AFlagWinsOverTheFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "kvasird_flag_wins.toml";
  std::ofstream(path) << "model = \"a.gguf\"\ndata = \"d\"\nthreads = 3\ndrain_s = 7\n";
  const auto line = ParseCommandLine({"--config", path.string(), "--threads", "5"}, "1");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.model, "a.gguf");
  EXPECT_EQ(line->options.threads, 5);
  EXPECT_EQ(line->options.drain_s, 7);
}

TEST(Config, AMissingFileModelOrDataFolderIsNamed) {
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"--config", "/nowhere.toml"}),
              HasSubstr("/nowhere.toml"));
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"--data", "d"}), HasSubstr("--model"));
  EXPECT_THAT(ErrorOf(std::vector<std::string>{"--model", "m"}), HasSubstr("--data"));
}

TEST(Config, WithoutCredentialsOnlyTheLoopbackIsListenedOn) {
  for (const char* address : {"0.0.0.0:7437", "[::]:7437", "example.org:7437", "192.168.0.1:1"}) {
    EXPECT_THAT(
        ErrorOf(std::vector<std::string>{"--model", "m", "--data", "d", "--listen", address}),
        HasSubstr("loopback"));
  }
}

TEST(Config, HelpNamesEveryFlagWithItsBounds) {
  const auto line = ParseCommandLine({"--help"}, "1.2.3");
  ASSERT_TRUE(line.ok());
  for (const OptionKey& key : OptionKeys()) EXPECT_THAT(line->print, HasSubstr(FlagOf(key)));
  EXPECT_EQ(ParseCommandLine({"--version"}, "1.2.3")->print, "kvasird 1.2.3\n");
}

TEST(NearestName, FindsTheFewestEditsAndNothingWhenAllAreFar) {
  const std::string_view names[] = {"listen", "threads", "device"};
  EXPECT_EQ(names::NearestName("lisen", names), "listen");
  EXPECT_EQ(names::NearestName("divice", names), "device");
  EXPECT_EQ(names::NearestName("thraeds", names), "threads");
  EXPECT_EQ(names::NearestName("zzzzzz", names), "");
  EXPECT_EQ(names::NearestName("", names), "");
  EXPECT_EQ(names::NearestName(std::string(10'000, 'l'), names), "");
}

}  // namespace
}  // namespace kvasir::server

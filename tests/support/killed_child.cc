#include "tests/support/killed_child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

extern char** environ;

namespace kvasir::testing {
namespace {

// Starts `program` with its output on a pipe; gives the end to read from.
pid_t Start(std::string program, std::vector<std::string> arguments, int* output) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::vector<char*> argv = {program.data()};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ), 0)
      << program;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  *output = ends[0];
  return child;
}

std::vector<std::string> WholeLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace

std::vector<std::string> RunAndKill(const std::string& name,
                                    const std::vector<std::string>& arguments, size_t lines) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  int output = -1;
  const pid_t child = Start((folder / name).string(), arguments, &output);
  std::string text;
  bool killed = false;
  char buffer[4096];
  while (const ssize_t got = read(output, buffer, sizeof(buffer))) {
    EXPECT_GT(got, 0);
    if (got < 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (!killed && std::ranges::count(text, '\n') >= static_cast<int64_t>(lines)) {
      kill(child, SIGKILL);
      killed = true;
    }
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(output);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself, status " << status;
  return WholeLines(text);
}

}  // namespace kvasir::testing

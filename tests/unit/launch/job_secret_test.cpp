#include "launch/job_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <future>
#include <map>
#include <set>
#include <vector>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;

Getenv variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

void write_file(const std::filesystem::path& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

TEST(Secret, VariableWinsOverFile) {
  EXPECT_EQ(job_secret(variables({{"BEVATRON_SECRET", "0123456789abcdef"},
                                  {"BEVATRON_SECRET_FILE", "/no/such/file"}})),
            "0123456789abcdef");
}

TEST(Secret, ShortOneIsRefused) {
  expect_error(ErrorKind::Usage, "BEVATRON_SECRET has 15 characters",
               [] { job_secret(variables({{"BEVATRON_SECRET", "0123456789abcde"}})); });
}

TEST(Secret, FileLosesItsLineEnd) {
  const TemporaryDirectory folder;
  write_file(folder / "s", "0123456789abcdefgh\n", 0600);
  EXPECT_EQ(job_secret(variables({{"BEVATRON_SECRET_FILE", (folder / "s").string()}})),
            "0123456789abcdefgh");
}

TEST(Secret, FileThatOthersReadIsRefused) {
  const TemporaryDirectory folder;
  for (const mode_t mode : {0644, 0640, 0602}) {
    write_file(folder / "s", "0123456789abcdefgh\n", mode);
    expect_error(ErrorKind::Usage, "chmod 600", [&] {
      job_secret(variables({{"BEVATRON_SECRET_FILE", (folder / "s").string()}}));
    });
  }
}

TEST(Secret, HugeFileAndFolderAreRefused) {
  const TemporaryDirectory folder;
  write_file(folder / "s", std::string(100000, 'x'), 0600);
  expect_error(ErrorKind::Usage, "more than 4096",
               [&] { job_secret(variables({{"BEVATRON_SECRET_FILE", (folder / "s").string()}})); });
  expect_error(ErrorKind::Usage, "is no file",
               [&] { job_secret(variables({{"BEVATRON_SECRET_FILE", folder.path().string()}})); });
}

TEST(Secret, IsMadeOnceForAllWhoAsk) {
  const TemporaryDirectory home;
  const Getenv env = variables({{"HOME", home.path().string()}});
  std::vector<std::future<std::string>> answers;
  for (int i = 0; i < 8; ++i)
    answers.push_back(std::async(std::launch::async, [&] { return job_secret(env); }));
  std::set<std::string> different;
  for (auto& answer : answers) different.insert(answer.get());
  EXPECT_EQ(different.size(), 1U);
  EXPECT_EQ(different.begin()->size(), 64U);
  EXPECT_EQ(job_secret(env), *different.begin());
  struct stat status{};
  ASSERT_EQ(::stat((home / ".bevatron/secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  const auto files = std::filesystem::directory_iterator(home / ".bevatron");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "temporary files are left";
}

TEST(Secret, HomeThatCannotBeWrittenSaysWhatToDo) {
  expect_error(ErrorKind::Usage, "set BEVATRON_SECRET",
               [] { job_secret(variables({{"HOME", "/proc"}})); });
  expect_error(ErrorKind::Usage, "set BEVATRON_SECRET", [] { job_secret(variables({})); });
}

TEST(Secret, RandomOnesDiffer) { EXPECT_NE(random_secret(), random_secret()); }

}  // namespace
}  // namespace bev

#include "report/tensorboard/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "support/event_reader.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;

// For as long as it lives no file of this process grows beyond so many bytes.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit now = before_;
    now.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(EventFile, TheFrameOfARecord) {
  // As TensorBoard's own writer frames these bytes.
  const std::string_view head("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12);
  const std::string record = framed_record(std::string(24, 'x'));
  EXPECT_EQ(record.substr(0, 12), head);
  EXPECT_EQ(record.substr(12 + 24), "\x8a\x63\xb6\xe6");
  EXPECT_EQ(test::read_records(record), std::vector{std::string(24, 'x')});
}

TEST(EventFile, RecordsAreThereAfterAFlush) {
  const test::TemporaryDirectory dir;
  EventFile file(dir / "e");
  file.add("one");
  file.add("");
  EXPECT_EQ(read_text(dir / "e"), "");
  file.flush();
  EXPECT_EQ(test::read_records(read_text(dir / "e")), (std::vector<std::string>{"one", ""}));
}

TEST(EventFile, RecordsAreThereAfterwards) {
  const test::TemporaryDirectory dir;
  EventFile(dir / "e").add("one");
  EXPECT_EQ(test::read_records(read_text(dir / "e")), std::vector<std::string>{"one"});
}

TEST(EventFile, ADiskThatIsFullForAWhileLeavesNoGap) {
  const test::TemporaryDirectory dir;
  EventFile file(dir / "e");
  {
    // Ends within the second record.
    const FullDisk full(30);
    file.add("one");
    file.add("two");
    file.flush();
    ASSERT_TRUE(file.failure());
    EXPECT_NE(file.failure()->find("/e is incomplete: File too large"), std::string::npos)
        << *file.failure();
    EXPECT_EQ(test::read_records(read_text(dir / "e")), std::vector<std::string>{"one"});
  }
  file.add("three");
  file.flush();
  EXPECT_FALSE(file.failure());
  EXPECT_EQ(test::read_records(read_text(dir / "e")),
            (std::vector<std::string>{"one", "two", "three"}));
}

TEST(EventFile, ADiskThatStaysFullIsGivenUp) {
  EventFile file("/dev/full");
  file.add(std::string(EventFile::kMostWaiting, 'x'));
  file.flush();
  ASSERT_TRUE(file.failure());
  file.add("one");
  file.flush();
  ASSERT_TRUE(file.failure()) << "what was given up is not there";
  EXPECT_NE(file.failure()->find("/dev/full is incomplete: No space left"), std::string::npos);
}

TEST(EventFile, CannotBeOpened) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "no/e", [&] { EventFile file(dir / "no/e"); });
}

TEST(EventFile, NamesFollowEachOther) {
  const test::TemporaryDirectory dir;
  EXPECT_FALSE(has_event_files(dir.path()));
  const auto first = next_event_file(dir.path(), 1700000000);
  EXPECT_TRUE(first.filename().string().starts_with("events.out.tfevents.1700000000."));
  EXPECT_TRUE(first.filename().string().ends_with(".0"));
  std::ofstream(dir / "events.txt") << "not one of them";
  EXPECT_FALSE(has_event_files(dir.path()));
  std::ofstream(first) << "";
  EXPECT_TRUE(has_event_files(dir.path()));
  for (const int64_t now : {1700000000, 1600000000}) {
    const auto next = next_event_file(dir.path(), now);
    EXPECT_TRUE(next.filename().string().starts_with("events.out.tfevents.1700000001.")) << next;
  }
  EXPECT_GT(next_event_file(dir.path(), 1700000002), first);
}

}  // namespace
}  // namespace bev

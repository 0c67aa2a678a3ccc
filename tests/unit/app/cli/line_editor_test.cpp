#include "app/cli/line_editor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

namespace bev::app {
namespace {

using Outcome = LineEditor::Outcome;

TEST(LineEditor, APipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  constexpr std::string_view kText = "one\n\ntwo words\r\nlast";
  ASSERT_EQ(::write(ends[1], kText.data(), kText.size()), std::ssize(kText));
  ::close(ends[1]);
  std::FILE* in = ::fdopen(ends[0], "r");
  {
    const Interrupt interrupt;
    LineEditor editor(in, stdout, "> ", interrupt);
    for (const std::string line : {"one", "", "two words", "last"}) {
      const LineEditor::Entry entry = editor.read();
      EXPECT_EQ(entry.outcome, Outcome::Line);
      EXPECT_EQ(entry.text, line);
    }
    EXPECT_EQ(editor.read().outcome, Outcome::Closed);
  }
  std::fclose(in);
}

// What a person types at a terminal.
class LineEditorAtATerminal : public testing::Test {
 protected:
  void SetUp() override {
    if (!LineEditor::can_edit()) GTEST_SKIP() << "built without libedit";
    ::setenv("TERM", "xterm", 1);
    person_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(person_, 0);
    ASSERT_EQ(::grantpt(person_), 0);
    ASSERT_EQ(::unlockpt(person_), 0);
    const int program = ::open(::ptsname(person_), O_RDWR | O_NOCTTY);
    ASSERT_GE(program, 0);
    terminal_ = ::fdopen(program, "r+");
    editor_.emplace(terminal_, terminal_, "> ", interrupt_);
  }
  void TearDown() override {
    editor_.reset();
    if (terminal_ != nullptr) std::fclose(terminal_);
    if (person_ >= 0) ::close(person_);
  }

  // What the terminal shows now.
  std::string shown() const {
    std::string text;
    pollfd waits{.fd = person_, .events = POLLIN, .revents = 0};
    while (::poll(&waits, 1, 0) == 1) {
      std::array<char, 4096> part{};
      const ssize_t got = ::read(person_, part.data(), part.size());
      if (got <= 0) break;
      text.append(part.data(), static_cast<size_t>(got));
    }
    return text;
  }
  void wait_for(std::string_view text) {
    std::string seen;
    while (seen.find(text) == std::string::npos) {
      seen += shown();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Typed when the sign has appeared: before that the terminal has keys of its own.
  void type(std::string_view keys) {
    wait_for("> ");
    EXPECT_EQ(::write(person_, keys.data(), keys.size()), std::ssize(keys));
  }
  LineEditor::Entry entry(std::string_view keys) {
    shown();
    std::jthread person([&] { type(keys); });
    return editor_->read();
  }
  std::string line(std::string_view keys) {
    const LineEditor::Entry typed = entry(keys);
    EXPECT_EQ(typed.outcome, Outcome::Line);
    return typed.text;
  }

  Interrupt interrupt_;
  int person_ = -1;
  std::FILE* terminal_ = nullptr;
  std::atomic<bool> is_done_ = false;
  std::optional<LineEditor> editor_;
};

TEST_F(LineEditorAtATerminal, Editing) {
  EXPECT_EQ(line("Once  a\x7F\x7Fupon\n"), "Once upon");
  EXPECT_EQ(line("world\x01the \x05!\n"), "the world!");
}

TEST_F(LineEditorAtATerminal, CharactersOfUtf8) {
  EXPECT_EQ(line("\u00E9\u4E16x\x7F\x7F\n"), "\u00E9");
}

TEST_F(LineEditorAtATerminal, History) {
  EXPECT_EQ(line("first\n"), "first");
  EXPECT_EQ(line("second\n"), "second");
  EXPECT_EQ(line("\x10\x10 again\n"), "first again");
}

TEST_F(LineEditorAtATerminal, TheEnd) { EXPECT_EQ(entry("\x04").outcome, Outcome::Closed); }

TEST_F(LineEditorAtATerminal, Interruption) {
  const pthread_t reader = ::pthread_self();
  std::jthread person([&] {
    type("half a line");
    wait_for("line");
    // The signal may come before the read() that it is to interrupt.
    while (!is_done_) {
      ::pthread_kill(reader, SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const LineEditor::Entry interrupted = editor_->read();
  is_done_ = true;
  person.join();
  EXPECT_EQ(interrupted.outcome, Outcome::Interrupted);
  EXPECT_EQ(interrupted.text, "half a line");
  interrupt_.forget();
  EXPECT_EQ(line("next\n"), "next") << "what was typed before is gone";
}

}  // namespace
}  // namespace bev::app

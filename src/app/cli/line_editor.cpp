#include "app/cli/line_editor.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#ifdef BEV_HAS_LIBEDIT
#include <histedit.h>

#include <clocale>
#include <cwchar>
#endif

namespace bev::app {

namespace {

bool is_terminal(std::FILE* file) { return ::isatty(::fileno(file)) == 1; }

void drop_newline(std::string& text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
}

}  // namespace

#ifdef BEV_HAS_LIBEDIT

// The library reads through us, since it would go on after an interruption.
class LineEditor::Editing {
 public:
  explicit Editing(const LineEditor& lines)
      : lines_(lines),
        old_locale_(std::setlocale(LC_CTYPE, nullptr)),
        editor_(with_locale(lines)),
        history_(::history_init()) {
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(editor_, EL_PROMPT, &Editing::sign);
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_GETCFN, &Editing::next_character);
    HistEvent event{};
    ::history(history_, &event, H_SETSIZE, kHistory);
    ::history(history_, &event, H_SETUNIQUE, 1);
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_source(editor_, nullptr);  // what the user has set for all programs
  }
  ~Editing() {
    ::el_end(editor_);
    ::history_end(history_);
    std::setlocale(LC_CTYPE, old_locale_.c_str());
  }
  Editing(const Editing&) = delete;
  Editing& operator=(const Editing&) = delete;

  Entry read() {
    typed_.clear();
    int count = 0;
    const char* line = ::el_gets(editor_, &count);
    if (line == nullptr || count <= 0) {
      if (lines_.interrupt_.is_asked()) return {.outcome = Outcome::Interrupted, .text = typed_};
      return {};
    }
    Entry entry{.outcome = Outcome::Line, .text = {line, static_cast<size_t>(count)}};
    drop_newline(entry.text);
    HistEvent event{};
    if (!entry.text.empty()) ::history(history_, &event, H_ENTER, entry.text.c_str());
    return entry;
  }

 private:
  static constexpr int kHistory = 1000;

  // Characters are those of UTF-8, whatever the locale of the program.
  static EditLine* with_locale(const LineEditor& lines) {
    if (std::setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1)
      std::setlocale(LC_CTYPE, "C.UTF-8");
    return ::el_init("bevatron", lines.in_, lines.out_, stderr);
  }

  static Editing& of(EditLine* editor) {
    void* self = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &self);
    return *static_cast<Editing*>(self);
  }

  static char* sign(EditLine* editor) {
    // The library does not change it.
    return const_cast<char*>(of(editor).lines_.sign_.c_str());
  }

  static int next_character(EditLine* editor, wchar_t* character) {
    Editing& self = of(editor);
    std::mbstate_t state{};
    for (;;) {
      char byte = 0;
      const ssize_t got = ::read(::fileno(self.lines_.in_), &byte, 1);
      if (got < 0 && errno == EINTR) {
        if (!self.lines_.interrupt_.is_asked()) continue;
        const LineInfo* line = ::el_line(editor);
        self.typed_.assign(line->buffer, line->lastchar);
        return -1;
      }
      if (got <= 0) return static_cast<int>(got);
      const size_t length = std::mbrtowc(character, &byte, 1, &state);
      if (length == static_cast<size_t>(-2)) continue;  // not whole yet
      if (length == static_cast<size_t>(-1)) *character = L'?';
      return 1;
    }
  }

  const LineEditor& lines_;
  std::string old_locale_;
  EditLine* editor_;
  History* history_;
  std::string typed_;  // before an interruption
};

bool LineEditor::can_edit() { return true; }

#else

class LineEditor::Editing {
 public:
  explicit Editing(const LineEditor&) {}
  Entry read() { return {}; }
};

bool LineEditor::can_edit() { return false; }

#endif

LineEditor::LineEditor(std::FILE* in, std::FILE* out, std::string sign, const Interrupt& interrupt)
    : in_(in), out_(out), sign_(std::move(sign)), interrupt_(interrupt) {
  if (can_edit() && is_terminal(in) && is_terminal(out))
    editing_ = std::make_unique<Editing>(*this);
}

LineEditor::~LineEditor() = default;

LineEditor::Entry LineEditor::read() { return editing_ ? editing_->read() : read_plain(); }

LineEditor::Entry LineEditor::read_plain() {
  if (is_terminal(in_) && is_terminal(out_)) {
    std::fputs(sign_.c_str(), out_);
    std::fflush(out_);
  }
  Entry entry;
  for (;;) {
    errno = 0;
    const int c = std::fgetc(in_);
    if (c == EOF && errno == EINTR) {
      std::clearerr(in_);
      if (!interrupt_.is_asked()) continue;
      entry.outcome = Outcome::Interrupted;
      return entry;
    }
    if (c == EOF) {
      if (!entry.text.empty()) entry.outcome = Outcome::Line;
      return entry;
    }
    if (c == '\n') break;
    entry.text += static_cast<char>(c);
  }
  drop_newline(entry.text);
  entry.outcome = Outcome::Line;
  return entry;
}

}  // namespace bev::app

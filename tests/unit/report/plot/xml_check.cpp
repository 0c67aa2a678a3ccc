#include "unit/report/plot/xml_check.h"

#include <cctype>
#include <set>
#include <vector>

#include "base/format.h"

namespace bev::test {

namespace {

class Checker {
 public:
  explicit Checker(std::string_view text) : text_(text) {}

  std::string fault() {
    while (fault_.empty() && at_ < text_.size()) {
      if (text_[at_] != '<') {
        character();
      } else if (text_.substr(at_).starts_with("<?")) {
        at_ = text_.find("?>", at_);
        at_ = at_ == std::string_view::npos ? text_.size() : at_ + 2;
      } else {
        tag();
      }
    }
    if (fault_.empty() && !open_.empty()) fail(format("{} is not closed", open_.back()));
    if (fault_.empty() && elements_ == 0) fail("no element");
    return fault_;
  }

 private:
  void fail(const std::string& what) {
    if (fault_.empty())
      fault_ = format("{} at {}: {}", what, at_, text_.substr(at_ < 20 ? 0 : at_ - 20, 60));
  }

  // A character of text or of an attribute.
  void character() {
    const char c = text_[at_];
    if (c == '&') {
      const std::string_view rest = text_.substr(at_);
      bool known = false;
      for (const char* name : {"&amp;", "&lt;", "&gt;", "&quot;"}) known |= rest.starts_with(name);
      if (!known) fail("a bare ampersand");
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') {
      fail("a control character");
    } else if (c == '>' || c == '<') {
      fail("a bare bracket");
    } else if (open_.empty() && std::isspace(static_cast<unsigned char>(c)) == 0) {
      fail("text outside of the element");
    }
    ++at_;
  }

  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    if (at_ == begin) fail("no name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool takes(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  void tag() {
    ++at_;
    if (takes("/")) {
      const std::string closed = name();
      if (open_.empty() || open_.back() != closed) return fail(format("{} is not open", closed));
      open_.pop_back();
      if (!takes(">")) fail("no bracket");
      return;
    }
    const std::string opened = name();
    if (open_.empty() && elements_++ > 0) return fail("a second root");
    open_.push_back(opened);
    std::set<std::string> attributes;
    while (fault_.empty() && takes(" ")) attribute(attributes);
    if (takes("/>")) {
      open_.pop_back();
    } else if (!takes(">")) {
      fail("no bracket");
    }
  }

  void attribute(std::set<std::string>& known) {
    const std::string key = name();
    if (!known.insert(key).second) return fail(format("{} twice", key));
    if (!takes("=\"")) return fail("no value");
    const size_t begin = at_;
    while (fault_.empty() && at_ < text_.size() && text_[at_] != '"') character();
    const std::string_view value = text_.substr(begin, at_ - begin);
    if (!takes("\"")) return fail("no quote");
    if (key == "class" || key == "aria-label") return;
    for (const char* bad : {"nan", "NaN", "inf", "Inf"})
      if (value.find(bad) != std::string_view::npos) fail(format("{} in {}", bad, key));
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<std::string> open_;
  int elements_ = 0;
  std::string fault_;
};

}  // namespace

std::string xml_fault(std::string_view text) { return Checker(text).fault(); }

}  // namespace bev::test

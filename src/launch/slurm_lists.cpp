#include "launch/slurm_lists.h"

#include <algorithm>

#include "base/check.h"
#include "base/number_list.h"

namespace bev {

namespace {

constexpr size_t kMostEntries = 65536, kMostListText = size_t{1} << 20, kMostDigits = 9;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_';
}

// Reads a list from left to right. Whatever does not fit ends in refuse().
class Reader {
 public:
  Reader(std::string_view text, std::string_view variable, std::string_view legal)
      : text_(text), variable_(variable), legal_(legal) {
    if (text.size() > kMostListText) refuse("it is longer than 1 MiB");
  }

  bool at_end() const { return next_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[next_]; }
  bool take(char c) {
    if (at_end() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(format("'{}' is missing", c));
  }

  std::string_view digits() {
    const size_t begin = next_;
    while (is_digit(peek())) ++next_;
    if (next_ == begin) refuse("a number is missing");
    if (next_ - begin > kMostDigits) refuse("a number has more than 9 digits");
    return text_.substr(begin, next_ - begin);
  }

  int number() { return *parse_number<int>(digits()); }

  std::string_view name_part() {
    const size_t begin = next_;
    while (is_name_character(peek())) ++next_;
    return text_.substr(begin, next_ - begin);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    const bool is_long = text_.size() > 200;
    throw Error(
        ErrorKind::Usage,
        format("{} is \"{}{}\", which is no list of Slurm's: {} at character {}; legal is {}",
               variable_, text_.substr(0, 200), is_long ? "..." : "", why, next_ + 1, legal_));
  }

  void check_count(size_t count) const {
    if (count > kMostEntries) refuse(format("there are more than {} entries", kMostEntries));
  }

 private:
  std::string_view text_, variable_, legal_;
  size_t next_ = 0;
};

// "01-03,7" up to the closing bracket: 01, 02, 03, 7.
std::vector<std::string> bracket_numbers(Reader& reader) {
  std::vector<std::string> numbers;
  do {
    const std::string_view first = reader.digits();
    const int begin = *parse_number<int>(first);
    const int end = reader.take('-') ? reader.number() : begin;
    if (end < begin) reader.refuse("a range runs backwards");
    reader.check_count(numbers.size() + static_cast<size_t>(end - begin) + 1);
    for (int value = begin; value <= end; ++value)
      numbers.push_back(format("{:0{}}", value, first.size()));
  } while (reader.take(','));
  reader.expect(']');
  return numbers;
}

// One name with its brackets.
std::vector<std::string> hosts_of_one_name(Reader& reader) {
  std::vector<std::string> hosts{""};
  bool is_empty = true;
  for (;;) {
    const std::string_view part = reader.name_part();
    for (std::string& host : hosts) host += part;
    is_empty = is_empty && part.empty();
    if (!reader.take('[')) break;
    is_empty = false;
    const std::vector<std::string> numbers = bracket_numbers(reader);
    reader.check_count(hosts.size() * numbers.size());
    std::vector<std::string> combined;
    combined.reserve(hosts.size() * numbers.size());
    for (const std::string& host : hosts)
      for (const std::string& number : numbers) combined.push_back(host + number);
    hosts = std::move(combined);
  }
  if (is_empty) reader.refuse("a name is missing");
  if (std::any_of(hosts.begin(), hosts.end(), [](const std::string& h) { return h.size() > 255; }))
    reader.refuse("a name has more than 255 characters");
  return hosts;
}

}  // namespace

std::vector<std::string> slurm_hosts(std::string_view list, std::string_view variable) {
  Reader reader(list, variable, "node[01-03,7],gpu-b2");
  std::vector<std::string> hosts;
  do {
    const std::vector<std::string> more = hosts_of_one_name(reader);
    reader.check_count(hosts.size() + more.size());
    hosts.insert(hosts.end(), more.begin(), more.end());
  } while (reader.take(','));
  if (!reader.at_end()) reader.refuse("something else stands");
  return hosts;
}

std::vector<int> slurm_counts(std::string_view list, std::string_view variable) {
  Reader reader(list, variable, "2(x3),1");
  std::vector<int> counts;
  do {
    const int count = reader.number();
    int times = 1;
    if (reader.take('(')) {
      reader.expect('x');
      times = reader.number();
      reader.expect(')');
    }
    reader.check_count(counts.size() + static_cast<size_t>(times));
    counts.insert(counts.end(), static_cast<size_t>(times), count);
  } while (reader.take(','));
  if (!reader.at_end()) reader.refuse("something else stands");
  return counts;
}

}  // namespace bev

#include "serve/http/http_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"

namespace bev {

namespace {

constexpr size_t kMostHeaders = 100;
constexpr size_t kLongestMethod = 16;
constexpr size_t kLongestChunkLine = 256;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_token_char(char c) {
  return is_digit(c) || is_letter(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}
bool is_visible(char c) { return c > ' ' && c < 0x7F; }
// What a value may hold: no controls but the tab.
bool is_value_char(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Whether a list separated by commas has that word, in lower case.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (lower_case(trimmed(list.substr(0, comma))) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::optional<size_t> hexadecimal(std::string_view text) {
  if (text.empty() || text.size() > 15) return {};
  size_t value = 0;
  for (const char each : text) {
    const char c = lower_case(each);
    if (!is_digit(c) && (c < 'a' || c > 'f')) return {};
    value = value * 16 + static_cast<size_t>(is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  return value;
}

// Takes the next line without its end; none where none ends.
std::optional<std::string_view> next_line(std::string_view& text) {
  const size_t end = text.find("\r\n");
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

}  // namespace

bool HttpParser::refuse(int status, std::string problem) {
  status_ = status;
  problem_ = std::move(problem);
  part_ = Part::Bad;
  return true;
}

void HttpParser::consume(size_t count) {
  bytes_.use(count);
  searched_ = 0;
}

// Every read_... returns whether it got on.
HttpParser::State HttpParser::advance() {
  bool gets_on = true;
  while (gets_on) {
    switch (part_) {
      case Part::Lines: gets_on = read_lines(); break;
      case Part::Body: gets_on = read_body(); break;
      case Part::ChunkSize: gets_on = read_chunk_size(); break;
      case Part::Chunk: gets_on = read_chunk(); break;
      case Part::ChunkEnd: gets_on = read_chunk_end(); break;
      case Part::Trailer: gets_on = read_trailer(); break;
      case Part::Done: return State::Ready;
      case Part::Bad: return State::Bad;
    }
  }
  return State::NeedsMore;
}

HttpRequest HttpParser::take() {
  part_ = Part::Lines;
  expects_ = false;
  return std::exchange(request_, {});
}

bool HttpParser::takes_expectation() {
  const bool waits = part_ == Part::Body || part_ == Part::ChunkSize;
  return waits && std::exchange(expects_, false);
}

bool HttpParser::read_lines() {
  // Some senders end a body with a line that is not part of it.
  while (bytes_.view().starts_with("\r\n")) consume(2);
  const size_t end = bytes_.view().find("\r\n\r\n", searched_);
  if (end == std::string_view::npos) {
    if (bytes_.size() > sizes_.header_bytes)
      return refuse(431, format("the header is longer than {} bytes", sizes_.header_bytes));
    searched_ = bytes_.size() < 3 ? 0 : bytes_.size() - 3;
    return false;
  }
  if (end + 4 > sizes_.header_bytes)
    return refuse(431, format("the header is longer than {} bytes", sizes_.header_bytes));
  request_ = {};
  if (read_head(bytes_.view().substr(0, end + 2))) return true;
  consume(end + 4);
  return true;
}

// True: it was refused.
bool HttpParser::read_head(std::string_view head) {
  if (read_request_line(*next_line(head))) return true;
  while (!head.empty())
    if (read_header(*next_line(head))) return true;
  return read_framing();
}

bool HttpParser::read_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return refuse(400, "the first line is not METHOD PATH VERSION");
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(method) || method.size() > kLongestMethod)
    return refuse(400, "the first line begins with no method");
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_visible))
    return refuse(400, "the path does not begin with a slash, or has a blank or a control in it");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return version.starts_with("HTTP/") ? refuse(505, "the versions are HTTP/1.0 and HTTP/1.1")
                                        : refuse(400, "the first line ends with no version");
  request_.method = method;
  request_.path = target.substr(0, target.find('?'));
  request_.is_old = version == "HTTP/1.0";
  return false;
}

bool HttpParser::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, std::min(colon, line.size()));
  // A blank in front of the colon, or a line that continues the one before, is no token.
  if (colon == std::string_view::npos || !is_token(name))
    return refuse(400, "a line of the header is not NAME: VALUE");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_char))
    return refuse(400, format("the header {} has a control in its value", name));
  if (request_.headers.size() == kMostHeaders)
    return refuse(431, format("there are more than {} headers", kMostHeaders));
  request_.headers.push_back({lower_case(name), std::string(value)});
  return false;
}

// Two readers that disagree about where a request ends would see different requests: what could be
// understood in two ways is refused.
bool HttpParser::read_framing() {
  const auto count = [&](std::string_view name) {
    return std::count_if(request_.headers.begin(), request_.headers.end(),
                         [&](const HttpHeader& each) { return each.name == name; });
  };
  for (const std::string_view name :
       {"host", "content-length", "transfer-encoding", "authorization", "expect"})
    if (count(name) > 1) return refuse(400, format("the header {} stands twice", name));
  if (!request_.is_old && count("host") == 0) return refuse(400, "the header host is missing");
  const std::string* connection = request_.header("connection");
  request_.keeps_alive = connection == nullptr ? !request_.is_old
                         : request_.is_old     ? has_word(*connection, "keep-alive")
                                               : !has_word(*connection, "close");
  const std::string* length = request_.header("content-length");
  const std::string* encoding = request_.header("transfer-encoding");
  if (const std::string* expected = request_.header("expect")) {
    if (lower_case(*expected) != "100-continue")
      return refuse(417, "the only expectation known is 100-continue");
    expects_ = !request_.is_old;
  }
  if (length != nullptr && encoding != nullptr)
    return refuse(400, "content-length and transfer-encoding exclude each other");
  if (encoding != nullptr) {
    if (request_.is_old) return refuse(400, "HTTP/1.0 has no transfer-encoding");
    if (lower_case(*encoding) != "chunked")
      return refuse(501, "the only transfer-encoding known is chunked");
    part_ = Part::ChunkSize;
    trailer_bytes_ = 0;
    return false;
  }
  return read_length(length == nullptr ? "0" : std::string_view(*length));
}

bool HttpParser::read_length(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit))
    return refuse(400, "content-length is not a number");
  const bool is_long = text.size() > 15;
  const size_t length = is_long ? 0 : static_cast<size_t>(std::stoull(std::string(text)));
  if (is_long || length > sizes_.body_bytes)
    return refuse(413, format("the body is longer than {} bytes", sizes_.body_bytes));
  left_ = length;
  part_ = length == 0 ? Part::Done : Part::Body;
  return false;
}

bool HttpParser::read_body() {
  if (bytes_.empty()) return false;
  const size_t count = std::min(left_, bytes_.size());
  request_.body.append(bytes_.view().substr(0, count));
  consume(count);
  left_ -= count;
  if (left_ == 0) part_ = Part::Done;
  return true;
}

bool HttpParser::read_chunk_size() {
  const size_t end = bytes_.view().substr(0, kLongestChunkLine + 2).find("\r\n");
  if (end == std::string_view::npos)
    return bytes_.size() > kLongestChunkLine + 1 && refuse(400, "the size of a chunk has no end");
  const std::string_view line = bytes_.view().substr(0, end);
  const std::optional<size_t> size =
      hexadecimal(trimmed(line.substr(0, std::min(line.find(';'), line.size()))));
  if (!size) return refuse(400, "the size of a chunk is not a hexadecimal number");
  if (*size > sizes_.body_bytes - request_.body.size())
    return refuse(413, format("the body is longer than {} bytes", sizes_.body_bytes));
  left_ = *size;
  part_ = left_ == 0 ? Part::Trailer : Part::Chunk;
  consume(end + 2);
  return true;
}

bool HttpParser::read_chunk() {
  if (bytes_.empty()) return false;
  const size_t count = std::min(left_, bytes_.size());
  request_.body.append(bytes_.view().substr(0, count));
  consume(count);
  left_ -= count;
  if (left_ == 0) part_ = Part::ChunkEnd;
  return true;
}

bool HttpParser::read_chunk_end() {
  if (bytes_.size() < 2) return false;
  if (!bytes_.view().starts_with("\r\n"))
    return refuse(400, "a chunk is longer than its size says");
  part_ = Part::ChunkSize;
  consume(2);
  return true;
}

// Headers behind the last chunk mean nothing here.
bool HttpParser::read_trailer() {
  const size_t end = bytes_.view().find("\r\n", searched_);
  const size_t count = end == std::string_view::npos ? bytes_.size() : end + 2;
  if (trailer_bytes_ + count > sizes_.header_bytes)
    return refuse(431, "the header behind the body is too long");
  if (end == std::string_view::npos) {
    searched_ = bytes_.empty() ? 0 : bytes_.size() - 1;
    return false;
  }
  trailer_bytes_ += count;
  if (end == 0) part_ = Part::Done;
  consume(count);
  return true;
}

}  // namespace bev

// HTTP as a handler sees it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// ASCII letters in lower case.
char lower_case(char c);
std::string lower_case(std::string_view text);

struct HttpHeader {
  std::string name;  // of a request: in lower case
  std::string value;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/v1/models", as it came, without what follows a question mark
  std::vector<HttpHeader> headers{};
  std::string body{};
  bool keeps_alive = true;  // the connection is for further requests
  bool is_old = false;      // HTTP/1.0, which knows no chunks

  // The value; null where there is none. `name` in lower case.
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type{};
  std::string body{};
  std::vector<HttpHeader> headers{};  // besides those about the body and the connection
};

// "Not Found"
std::string_view reason_of(int status);

// The lines in front of a body, with the empty one. `framing` are whole lines: how long the body
// is, whether the connection stays.
std::string head_of(const HttpResponse& response, std::string_view framing);

// What is done with requests, and how they are answered. All of it happens in the thread of the
// server.

// One request and what became of it.
struct HttpRecord {
  std::string method{}, path{};
  std::string route{};  // what it was for, out of a few: "/v1/completions"; empty: nothing we have
  std::string note{};   // what the handler adds to the line of the log
  int status = 0;       // 499: the client went away, or was left, before or as the answer was whole
  double seconds = 0;   // from the whole request to the whole answer
};

// The answer of one request. Either send() once, or begin(), any number of write(), end().
class HttpAnswer {
 public:
  virtual ~HttpAnswer() = default;

  // One that is larger than the server allows becomes an error that says so.
  virtual void send(HttpResponse response) = 0;
  // An answer that comes piece by piece; the body of `head` is not used.
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string_view piece) = 0;
  virtual void end() = 0;

  // Of this request; the handler fills in `route` and `note`.
  virtual HttpRecord& record() = 0;
};

// What goes on until a request is answered. Destroyed when the answer has been given, or when the
// client has gone away: then nothing of it may go on.
class HttpJob {
 public:
  virtual ~HttpJob() = default;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;

  // Answers, or returns what will; `answer` outlives that. An exception becomes status 500.
  virtual std::unique_ptr<HttpJob> handle(HttpRequest request, HttpAnswer& answer) = 0;
  // Called once for every request.
  virtual void finished(const HttpRecord& record) = 0;
  // An answer that the server gives by itself, in the form that the request expects.
  virtual HttpResponse error(const HttpRecord& request, int status, const std::string& message) = 0;
  // Some times a second.
  virtual void tick() {}
};

}  // namespace bev

// The fields of a request, read strictly: each is asked for by name, with its type and range; what
// nobody asked for is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/http/http_message.h"

namespace bev {

// What a client did wrong, or what went wrong for it, as OpenAI's clients expect to be told.

struct ApiError {
  int status = 400;
  std::string message{};  // a sentence
  std::string param{};    // the field of the request at fault; empty: none
  std::string code{};     // one word for programs; empty: none
};

// {"error": {"message", "type", "param", "code"}}; the type follows from the status. A client that
// is to try again later is told when.
HttpResponse response_of(const ApiError& error);
// The body alone, for an error within a stream.
std::string json_of(const ApiError& error);

// The first problem counts: questions after it are answered with `otherwise`. A field that is null
// is as good as absent.
class RequestFields {
 public:
  // `json` must outlive this. What is no object is a problem. `where` stands in front of names in
  // messages: "stream_options.".
  explicit RequestFields(const Json& json, std::string where = "");

  // Null where it is absent.
  const Json* find(std::string_view name);
  bool boolean(std::string_view name, bool otherwise);
  int64_t integer(std::string_view name, int64_t otherwise, int64_t min, int64_t max);
  double real(std::string_view name, double otherwise, double min, double max);
  // Up to so many bytes.
  std::string text(std::string_view name, std::string_view otherwise, size_t most);

  void refuse(std::string_view name, std::string message);
  // Takes over a problem, where there is one.
  void add(const std::optional<ApiError>& problem);
  bool is_good() const { return !problem_; }
  // The first problem. A field that was never asked for comes before all others: what is missing
  // may stand there, misspelt. REQUIRES: all fields were asked for, whatever was found wrong.
  std::optional<ApiError> finish();

 private:
  const Json& json_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
  std::optional<ApiError> problem_;
};

// What a client wants continued.

struct RequestPrompt {
  std::string text{};
  std::vector<int32_t> ids{};
  bool is_ids = false;
};

// What a request may ask for.
struct RequestLimits {
  int64_t context = 2048;     // tokens of a text, prompt included
  int64_t max_tokens = 2048;  // new ones of a text
  int64_t texts = 128;        // of one request: prompts x samples
  int64_t vocab = 0;
  // Most candidates for the masks of one request. While an answer is made, each takes half a KB.
  int64_t candidates = 1 << 18;
};

// A string, a list of strings, a list of ids or a list of those; problems go to the reader. A
// prompt of ids is not empty.
std::vector<RequestPrompt> read_prompts(RequestFields& fields, std::string_view name,
                                        const RequestLimits& limits);

// A string or a list of up to 16 strings, none of them empty.
std::vector<std::string> read_stops(RequestFields& fields, std::string_view name);

// The JSON of a body, or why it is none.
struct ParsedBody {
  Json json{};
  std::optional<ApiError> problem{};
};
ParsedBody parse_body(std::string_view body);

}  // namespace bev

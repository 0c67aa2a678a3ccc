// What a client wants continued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/request_fields.h"

namespace bev {

struct Prompt {
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
};

// A string, a list of strings, a list of ids or a list of those; problems go to the reader. A
// prompt of ids is not empty.
std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name,
                                 const RequestLimits& limits);

// A string or a list of up to 16 strings, none of them empty.
std::vector<std::string> read_stops(FieldReader& fields, std::string_view name);

// The JSON of a body, or why it is none.
struct ParsedBody {
  Json json{};
  std::optional<ApiError> problem{};
};
ParsedBody parse_body(std::string_view body);

}  // namespace bev

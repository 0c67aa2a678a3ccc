// What a client did wrong, or what went wrong for it, as OpenAI's clients expect to be told.
#pragma once

#include <string>

#include "serve/http/http_message.h"

namespace bev {

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

}  // namespace bev

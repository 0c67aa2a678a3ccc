// The model of a server, as its clients see it.
#pragma once

#include <cstdint>
#include <string>

#include "infer/generation_service.h"
#include "serve/request_prompt.h"
#include "text/tokenizer.h"

namespace bev {

struct ServedModel {
  std::string name{};
  int64_t created = 0;             // seconds since 1970
  Tokenizer* tokenizer = nullptr;  // used by the thread of the server alone
  GenerationService* service = nullptr;
  int32_t end = -1;    // the id that ends a document; -1: none
  int32_t begin = -1;  // the id that begins a text; -1: none
  RequestLimits limits{};
};

}  // namespace bev

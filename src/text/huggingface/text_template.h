// The tokens that are put around one text, or around a pair of texts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bev {

struct TextTemplate {
  struct Part {
    enum class Kind : uint8_t { First, Second, Tokens } kind = Kind::First;
    int32_t type_id = 0;
    std::vector<int32_t> ids;  // Tokens
  };

  std::vector<Part> single{{.kind = Part::Kind::First, .type_id = 0, .ids = {}}};
  std::vector<Part> pair{{.kind = Part::Kind::First, .type_id = 0, .ids = {}},
                         {.kind = Part::Kind::Second, .type_id = 1, .ids = {}}};
};

}  // namespace bev

// Whether a text is well-formed enough to be drawn: for what our own writer makes.
#pragma once

#include <string>
#include <string_view>

namespace bev::test {

// What is wrong first; empty: tags are balanced, attributes quoted and given once, text escaped,
// and no attribute has a number that is none.
std::string xml_fault(std::string_view text);

}  // namespace bev::test

// Expectations about errors: kind and message together.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace bev::test {

// Calls f, which must throw an Error of this kind whose message contains `text`. Returns the
// message.
template <class F>
std::string expect_error(ErrorKind kind, const std::string& text, F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(name_of(e.kind), name_of(kind)) << e.what();
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos)
        << "message: " << e.what() << "\nexpected to find: " << text;
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "not an Error but: " << e.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown; expected: " << text;
  return "";
}

}  // namespace bev::test

// What the readers of files and command lines hand on: values for fields, and what went wrong.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "config/parse/field.h"
#include "config/parse/origin.h"
#include "config/parse/problem.h"

namespace bev {

struct Assignment {
  const Field* field = nullptr;
  Value value;
  Origin origin;
  const Alias* alias = nullptr;  // the Megatron flag it was given by, if any
};

struct Findings {
  std::vector<Problem> problems;
  // Fields that a refused value or a misspelt name probably meant to set: rules that read them
  // would only report the same mistake again.
  std::set<std::string, std::less<>> doubtful;
  bool incomplete = false;  // a file or preset could not be read: something missing means nothing
};

}  // namespace bev

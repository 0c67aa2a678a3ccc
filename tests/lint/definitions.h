// Finds where a C++ file defines its functions, classes and file-scope names. A scanner for the
// style of this project, not a parser: it reads declarations at namespace and class scope and skips
// the bodies of functions. Preprocessor lines are ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev::lint {

struct Definition {
  enum class Kind { Function, Class, Variable, Alias };
  Kind kind;
  std::string name;  // qualified: "bev::Block::backward"; unnamed namespaces are left out
  // The parameter types of a function, "int,const T&": overloads differ in them.
  std::string parameters;
  bool in_unnamed_namespace;
  bool at_namespace_scope;  // false: a member of a class
  // The bytes of the text from the first word to the closing brace or semicolon, initialiser lists
  // included. The range of a class contains its members, which are listed as well.
  size_t begin, end;
};

// In the order in which the definitions begin.
std::vector<Definition> definitions(std::string_view text);

// The name without its qualification: "backward" of "bev::Block::backward".
std::string last_part(const std::string& name);

// Whether `name`, qualified as far as its author liked, denotes a definition with that full name:
// "backward" and "Block::backward" denote "bev::Block::backward". A constructor is denoted by
// "Block::Block" only, "Block" is the class.
bool denotes(std::string_view name, std::string_view full_name);

}  // namespace bev::lint

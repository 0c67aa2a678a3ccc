#include "lint/definitions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "lint/source_text.h"

namespace bev::lint {

namespace {

struct Token {
  std::string_view text;  // a word, "::", "->", or one character
  size_t begin;
};

// Blanks preprocessor lines and the lines that continue them.
void blank_directives(std::string& code) {
  for (size_t begin = 0; begin < code.size();) {
    size_t end = std::min(code.find('\n', begin), code.size());
    const size_t mark = code.find_first_not_of(" \t", begin);
    if (mark < end && code[mark] == '#') {
      while (end < code.size() && code[end - 1] == '\\')
        end = std::min(code.find('\n', end + 1), code.size());
      std::replace_if(
          code.begin() + static_cast<std::ptrdiff_t>(begin),
          code.begin() + static_cast<std::ptrdiff_t>(end), [](char c) { return c != '\n'; }, ' ');
    }
    begin = end + 1;
  }
}

std::vector<Token> tokens_of(std::string_view code) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < code.size();) {
    size_t end = at + 1;
    if (is_word_char(code[at])) {
      while (end < code.size() && is_word_char(code[end])) ++end;
    } else if (code.substr(at, 2) == "::" || code.substr(at, 2) == "->") {
      end = at + 2;
    }
    if (std::isspace(static_cast<unsigned char>(code[at])) == 0)
      tokens.push_back({code.substr(at, end - at), at});
    at = end;
  }
  return tokens;
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words before a parenthesis that does not hold the parameters of a function.
bool takes_arguments(std::string_view word) {
  return is_any_of(word, {"alignas", "decltype", "noexcept", "explicit", "requires", "sizeof",
                          "__attribute__", "__launch_bounds__", "__align__"});
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : code_(blank_comments_and_literals(text)) {
    blank_directives(code_);
    tokens_ = tokens_of(code_);
    match_brackets();
  }

  std::vector<Definition> run() {
    scan_scope(0, tokens_.size(), {});
    return std::move(found_);
  }

 private:
  struct Scope {
    std::string name;
    bool is_unnamed = false;
    bool is_class = false;
  };

  std::string_view text(size_t at) const {
    return at < tokens_.size() ? tokens_[at].text : std::string_view();
  }
  bool is_word(size_t at) const { return at < tokens_.size() && is_word_char(text(at)[0]); }
  size_t after_bracket(size_t open) const {
    return open < closing_.size() ? closing_[open] + 1 : tokens_.size();
  }

  void match_brackets() {
    closing_.assign(tokens_.size(), tokens_.size());
    std::vector<size_t> open;
    for (size_t at = 0; at < tokens_.size(); ++at) {
      if (is_any_of(text(at), {"(", "[", "{"})) open.push_back(at);
      if (!is_any_of(text(at), {")", "]", "}"}) || open.empty()) continue;
      closing_[open.back()] = at;
      open.pop_back();
    }
  }

  // The token after the template arguments that begin at `open`; `open` if they do not end.
  size_t after_angles(size_t open) const {
    int depth = 0;
    for (size_t at = open; at < tokens_.size();) {
      if (is_any_of(text(at), {"(", "[", "{"})) {
        at = after_bracket(at);
        continue;
      }
      if (text(at) == ";") return open;
      if (text(at) == "<") ++depth;
      if (text(at) == ">" && --depth == 0) return at + 1;
      ++at;
    }
    return open;
  }

  // The token after the next semicolon outside brackets.
  size_t after_semicolon(size_t at) const {
    while (at < tokens_.size() && text(at) != ";" && text(at) != "}")
      at = is_any_of(text(at), {"(", "[", "{"}) ? after_bracket(at) : at + 1;
    return at < tokens_.size() && text(at) == ";" ? at + 1 : at;
  }

  // The first token of the name that ends before `end`: "Store<T>::find" has three parts.
  size_t name_begin(size_t end, size_t first) const {
    size_t at = end;
    while (at > first) {
      size_t part = at;
      if (text(part - 1) == ">") {
        int depth = 0;
        do {
          --part;
          if (text(part) == ">") ++depth;
          if (text(part) == "<") --depth;
        } while (depth > 0 && part > first);
      }
      if (part <= first || !is_word(part - 1)) break;
      at = part - 1;
      if (at > first && text(at - 1) == "~") --at;
      if (at <= first + 1 || text(at - 1) != "::") break;
      --at;
    }
    return at;
  }

  // The tokens of a name without their template arguments.
  std::string name_of(size_t begin, size_t end) const {
    std::string name;
    for (size_t at = begin; at < end;) {
      const size_t next = text(at) == "<" ? after_angles(at) : at;
      if (next == at) {
        if (!name.empty() && is_word(at) && is_word_char(name.back())) name += ' ';
        name += text(at++);
      }
      at = std::max(at, next);
    }
    return name;
  }

  // The types between the parentheses at `open`, without names and default values.
  std::string parameters_of(size_t open) const {
    std::string types;
    size_t begin = open + 1;
    for (size_t at = begin; at <= closing_[open] && at < tokens_.size();) {
      if (text(at) == "<") {
        at = std::max(after_angles(at), at + 1);
      } else if (is_any_of(text(at), {"(", "[", "{"})) {
        at = after_bracket(at);
      } else if (text(at) == "," || at == closing_[open]) {
        size_t end = begin;
        while (end < at && text(end) != "=") ++end;
        if (end > begin + 1 && is_word(end - 1) && text(end - 2) != "::") --end;  // its name
        types += (types.empty() ? "" : ",");
        for (size_t i = begin; i < end; ++i)
          types += (i > begin && is_word(i) && is_word(i - 1) ? " " : "") + std::string(text(i));
        begin = ++at;
      } else {
        ++at;
      }
    }
    return types;
  }

  void add(Definition::Kind kind, const std::string& name, const Scope& scope, size_t first,
           size_t end, std::string parameters = {}) {
    if (name.empty()) return;
    const Token& last = tokens_[std::min(end, tokens_.size()) - 1];
    found_.push_back({.kind = kind,
                      .name = scope.name.empty() ? name : scope.name + "::" + name,
                      .parameters = std::move(parameters),
                      .in_unnamed_namespace = scope.is_unnamed,
                      .at_namespace_scope = !scope.is_class,
                      .begin = tokens_[first].begin,
                      .end = last.begin + last.text.size()});
  }

  void scan_scope(size_t first, size_t last, const Scope& scope) {
    while (first < last)
      first = std::max(scan_declaration(first, std::min(last, tokens_.size()), scope), first + 1);
  }

  // The token after the `template <...>`, the attributes and the specifiers before a declaration.
  size_t after_prefix(size_t at) const {
    for (;;) {
      if (text(at) == "template" && text(at + 1) == "<") {
        at = std::max(after_angles(at + 1), at + 2);
      } else if (text(at) == "[" && text(at + 1) == "[") {
        at = after_bracket(at);
      } else if (is_any_of(text(at), {"inline", "static", "constexpr", "const", "typedef"})) {
        ++at;
      } else {
        return at;
      }
    }
  }

  // One declaration; returns the token after it.
  size_t scan_declaration(size_t first, size_t last, const Scope& scope) {
    if (is_any_of(text(first), {"public", "private", "protected"}) && text(first + 1) == ":")
      return first + 2;
    if (is_any_of(text(first), {";", "}"})) return first + 1;
    const size_t key = after_prefix(first);
    if (text(key) == "namespace") return scan_namespace(first, key, scope);
    if (text(key) == "extern" && text(key + 1) == "\"") {
      const size_t open = key + 3;
      if (text(open) != "{") return scan_declaration(open, last, scope);
      scan_scope(open + 1, closing_[open], scope);
      return after_bracket(open);
    }
    if (text(key) == "using" || text(key) == "static_assert" || text(key) == "friend")
      return scan_using(first, key, scope);
    return scan_named(first, key, last, scope);
  }

  size_t scan_namespace(size_t first, size_t key, const Scope& scope) {
    size_t open = key + 1;
    while (is_word(open) || text(open) == "::") ++open;
    const std::string name = name_of(key + 1, open);
    if (text(open) != "{") {  // namespace fs = std::filesystem;
      add(Definition::Kind::Alias, name, scope, first, after_semicolon(open));
      return after_semicolon(open);
    }
    Scope inner = scope;
    if (name.empty()) inner.is_unnamed = true;
    if (!name.empty()) inner.name = scope.name.empty() ? name : scope.name + "::" + name;
    scan_scope(open + 1, closing_[open], inner);
    return after_bracket(open);
  }

  size_t scan_using(size_t first, size_t key, const Scope& scope) {
    const size_t end = after_semicolon(key);
    if (text(key) == "using" && text(key + 2) == "=")
      add(Definition::Kind::Alias, name_of(key + 1, key + 2), scope, first, end);
    return end;
  }

  // A class, function or variable.
  size_t scan_named(size_t first, size_t key, size_t last, const Scope& scope) {
    const bool is_class_key = is_any_of(text(key), {"class", "struct", "union", "enum"});
    std::string function;  // once its parameters were seen
    size_t parameters = 0;
    for (size_t at = key; at < last;) {
      const std::string_view token = text(at);
      if (token == ";" || token == "}") {
        return at + 1;
      } else if (token == "operator") {
        size_t open = at + 1;
        if (text(open) == "(") open += 2;
        while (open < last && text(open) != "(") ++open;
        function = name_of(name_begin(at + 1, key), open);
        parameters = std::min(open, last - 1);
        at = after_bracket(parameters);
      } else if (token == "<" && is_word(at - 1)) {
        at = std::max(after_angles(at), at + 1);
      } else if (token == "(") {
        const std::string name = name_of(name_begin(at, key), at);
        if (function.empty() && !takes_arguments(name)) {
          function = name;
          parameters = at;
        }
        at = after_bracket(at);
      } else if (token == "[") {
        at = after_bracket(at);
      } else if (token == "=") {
        const size_t end = after_semicolon(at);
        if (function.empty())
          add(Definition::Kind::Variable, variable_name(at, key), scope, first, end);
        return end;
      } else if (token == ":" && !function.empty()) {
        at = after_initializers(at + 1);
      } else if (token == "{") {
        if (!function.empty()) {
          size_t end = after_bracket(at);
          while (text(end) == "catch") end = after_bracket(after_bracket(end + 1));
          add(Definition::Kind::Function, function, scope, first, end, parameters_of(parameters));
          return end;
        }
        return is_class_key ? scan_class(first, key, at, scope)
                            : scan_braced_variable(first, key, at, scope);
      } else {
        ++at;
      }
    }
    return last;
  }

  // The name before an initialiser, or before the extents of an array.
  std::string variable_name(size_t end, size_t key) const {
    while (end > key && text(end - 1) == "]") {
      while (end > key && text(end - 1) != "[") --end;
      --end;
    }
    return name_of(name_begin(end, key), end);
  }

  size_t scan_braced_variable(size_t first, size_t key, size_t open, const Scope& scope) {
    const size_t end = after_semicolon(open);
    add(Definition::Kind::Variable, variable_name(open, key), scope, first, end);
    return end;
  }

  // The token after `a_(1), b_{2}`.
  size_t after_initializers(size_t at) const {
    for (;;) {
      while (at < tokens_.size() && !is_any_of(text(at), {"(", "{", ";"}))
        at = text(at) == "<" ? std::max(after_angles(at), at + 1) : at + 1;
      if (at >= tokens_.size() || text(at) == ";") return at;
      at = after_bracket(at);
      while (text(at) == ".") ++at;
      if (text(at) != ",") return at;
      ++at;
    }
  }

  size_t scan_class(size_t first, size_t key, size_t open, const Scope& scope) {
    size_t end = key + 1;  // of the name
    for (size_t at = key + 1; at < open && text(at) != ":";) {
      if (text(at) == "[" || text(at) == "(") {
        at = after_bracket(at);
      } else if (text(at) == "<") {
        at = std::max(after_angles(at), at + 1);
      } else {
        if (is_word(at) && !is_any_of(text(at), {"class", "struct", "final", "alignas"}))
          end = at + 1;
        ++at;
      }
    }
    const std::string name = end > key + 1 ? name_of(name_begin(end, key + 1), end) : "";
    const size_t after = after_semicolon(open);
    add(Definition::Kind::Class, name, scope, first, after);
    if (text(key) != "enum") {
      const Scope inner{.name = scope.name.empty() ? name : scope.name + "::" + name,
                        .is_unnamed = scope.is_unnamed,
                        .is_class = true};
      scan_scope(open + 1, closing_[open], name.empty() ? scope : inner);
    }
    // `struct { ... } kTable[] = {...};` defines a variable as well.
    size_t variable = after_bracket(open);
    while (variable < after && is_any_of(text(variable), {"const", "constexpr"})) ++variable;
    if (is_word(variable))
      add(Definition::Kind::Variable, std::string(text(variable)), scope, first, after);
    return after;
  }

  std::string code_;
  std::vector<Token> tokens_;
  std::vector<size_t> closing_;  // of each opening bracket
  std::vector<Definition> found_;
};

}  // namespace

std::vector<Definition> definitions(std::string_view text) {
  std::vector<Definition> found = Scanner(text).run();
  std::stable_sort(found.begin(), found.end(),
                   [](const Definition& a, const Definition& b) { return a.begin < b.begin; });
  return found;
}

std::string last_part(const std::string& name) {
  const size_t colon = name.rfind(':');
  return colon == std::string::npos ? name : name.substr(colon + 1);
}

bool denotes(std::string_view name, std::string_view full_name) {
  if (name == full_name) return true;
  if (!full_name.ends_with(name)) return false;
  std::string_view before = full_name.substr(0, full_name.size() - name.size());
  if (!before.ends_with("::")) return false;
  before.remove_suffix(2);
  const bool is_constructor =
      before.ends_with(name) &&
      (before.size() == name.size() || before[before.size() - name.size() - 1] == ':');
  return !is_constructor;
}

}  // namespace bev::lint

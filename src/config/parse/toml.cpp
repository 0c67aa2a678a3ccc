#include "config/parse/toml.h"

#include <toml++/toml.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "config/parse/field.h"
#include "config/parse/notation.h"
#include "config/parse/problem.h"
#include "config/parse/value.h"

namespace bev {

namespace {

// toml++ bounds the nesting of values but not of dotted keys, and destroys nested tables by
// recursion, so both are bounded before it sees the text. A configuration needs a depth of two.
constexpr int kMaxNesting = 8;
constexpr int kMaxDotsPerLine = 32;

// Follows strings and comments just far enough to find brackets and dots outside them. Returns the
// line of the first excess, 0 when there is none.
size_t line_nested_too_deep(std::string_view text) {
  size_t line = 1;
  int depth = 0, dots = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const bool multi = text.substr(i, 3) == std::string(3, c);
      i += multi ? 3 : 1;
      while (i < text.size()) {
        if (text[i] == '\n') {
          if (!multi) break;  // an error the parser will report
          ++line;
        }
        if (c == '"' && text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n') {
          i += 2;
        } else if (text[i] == c && (!multi || text.substr(i, 3) == std::string(3, c))) {
          i += multi ? 3 : 1;
          // Up to two quotes may stand in front of the three that close.
          while (multi && i < text.size() && text[i] == c) ++i;
          break;
        } else {
          ++i;
        }
      }
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '\n') {
      ++line;
      dots = 0;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (c == '.') ++dots;
    if (depth > kMaxNesting || dots > kMaxDotsPerLine) return line;
    ++i;
  }
  return 0;
}

std::string bracketed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += format("{}[{}]", list.empty() ? "" : ", ", name);
  return list;
}

// A key as a message can show it: control characters escaped, not endless.
std::string shown_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-';
  });
  if (bare && key.size() <= 80) return std::string(key);
  return key.size() <= 80 ? toml_string(key)
                          : "a key of " + format("{}", key.size()) + " characters";
}

const char* kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::array: return "a list";
    case toml::node_type::table: return "a table";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time: return "a date or time";
    default: return "a value";
  }
}

// None when an entry is no text.
std::optional<Value> texts_of(const toml::array& list) {
  TextList texts;
  for (const toml::node& node : list) {
    const auto* text = node.as_string();
    if (text == nullptr) return std::nullopt;
    texts.push_back(text->get());
  }
  return texts;
}

class TomlReader {
 public:
  TomlReader(std::string_view name, Findings& findings) : name_(name), findings_(findings) {}

  std::vector<Assignment> read(const toml::table& file) {
    const std::vector<std::string> sections = section_names();
    for (const auto& [key, node] : file) {
      const std::string section(key.str());
      const bool known = std::find(sections.begin(), sections.end(), section) != sections.end();
      if (known && node.is_table()) {
        read_section(section, *node.as_table());
      } else if (known) {
        not_a_section(section, node);
      } else {
        unknown_section(section, node, place(key.source()));
      }
    }
    // toml++ sorts by name; people read from top to bottom.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Problem& a, const Problem& b) { return line_of(a) < line_of(b); });
    findings_.problems.insert(findings_.problems.end(), found_.begin(), found_.end());
    return std::move(assignments_);
  }

 private:
  static size_t line_of(const Problem& problem) {
    const size_t colon = problem.where.rfind(':');
    size_t line = 0;
    for (size_t i = colon + 1; i < problem.where.size() && problem.where[i] >= '0' &&
                               problem.where[i] <= '9' && line < kMaxTomlBytes * 2;
         ++i)
      line = line * 10 + static_cast<size_t>(problem.where[i] - '0');
    return line;
  }

  std::string place(const toml::source_region& region) const {
    return format("{}:{}", name_, region.begin.line);
  }

  void read_section(const std::string& section, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string path = section + "." + std::string(key.str());
      const Field* field = find_field(path);
      const std::string where = place(key.source());
      if (field != nullptr) {
        read_value(*field, node, where);
      } else if (field = find_renamed_field(path); field != nullptr) {
        read_renamed(*field, table, node, where);
      } else {
        unknown_key(section, key.str(), where);
      }
    }
  }

  void read_renamed(const Field& field, const toml::table& table, const toml::node& node,
                    const std::string& where) {
    if (table.contains(field.key())) {
      add(field.path, {.what = format("{} is given twice", field.path),
                       .where = where,
                       .why = format("{} is its earlier name", former_path(field)),
                       .legal = format("only {}", field.path)});
      return;
    }
    findings_.notes.push_back(format("{}: {}", where, renamed_note(field)));
    read_value(field, node, where);
  }

  void read_value(const Field& field, const toml::node& node, const std::string& where) {
    std::optional<Value> value;
    if (const auto* integer = node.as_integer()) value = integer->get();
    if (const auto* real = node.as_floating_point()) value = real->get();
    if (const auto* boolean = node.as_boolean()) value = boolean->get();
    if (const auto* text = node.as_string()) value = text->get();
    if (const auto* list = node.as_array()) value = texts_of(*list);
    if (!value) {
      add(field.path,
          {.what = format("{} cannot be {}", field.path, kind_of(node)),
           .where = where,
           .why = field.type == FieldType::List ? "its entries are texts" : "a field has one value",
           .legal = legal_values(field)});
      return;
    }
    Parsed parsed = convert_value(field, *value);
    if (!parsed.value) {
      add(field.path, {.what = format("{} has an impossible value", field.path),
                       .where = where,
                       .why = std::move(parsed.why),
                       .legal = std::move(parsed.legal)});
      return;
    }
    assignments_.push_back({.field = &field,
                            .value = std::move(*parsed.value),
                            .origin = {.kind = OriginKind::File, .text = where}});
  }

  void unknown_key(const std::string& section, std::string_view key, const std::string& where) {
    std::vector<std::string> names;
    std::vector<const Field*> owners;
    for (const Field& field : fields()) {
      if (field.section() != section) continue;
      names.emplace_back(field.key());
      owners.push_back(&field);
      for (const Alias& alias : field.about.aliases) {
        std::string name(alias.flag.substr(2));
        std::replace(name.begin(), name.end(), '-', '_');
        names.push_back(std::move(name));
        owners.push_back(&field);
      }
    }
    std::string wanted(key);
    std::replace(wanted.begin(), wanted.end(), '-', '_');
    Problem problem{.what = format("[{}] has no key {}", section, shown_key(key)),
                    .where = where,
                    .why = {},
                    .legal = {}};
    const std::string near = nearest(wanted, names);
    std::string elsewhere = paths_with_key(key);
    if (!elsewhere.empty()) {
      problem.legal = format("did you mean {}?", elsewhere);
    } else if (!near.empty()) {
      const auto index = std::find(names.begin(), names.end(), near) - names.begin();
      const Field& field = *owners[static_cast<size_t>(index)];
      problem.legal = format("did you mean {}?", field.key());
      findings_.doubtful.insert(field.path);
    } else {
      problem.legal = format("one of: {}", keys_of(section));
    }
    found_.push_back(std::move(problem));
  }

  void unknown_section(const std::string& key, const toml::node& node, const std::string& where) {
    const std::vector<std::string> sections = section_names();
    if (!node.is_table() && !node.is_array()) {
      const std::string paths = paths_with_key(key);
      found_.push_back({.what = format("{} stands outside of a section", shown_key(key)),
                        .where = where,
                        .why = "every key belongs to a section",
                        .legal = paths.empty() ? format("sections: {}", bracketed(sections))
                                               : format("did you mean {}?", paths)});
      return;
    }
    const std::string near = nearest(key, sections);
    found_.push_back({.what = format("there is no section {}", shown_key(key)),
                      .where = where,
                      .why = {},
                      .legal = near.empty() ? format("sections: {}", bracketed(sections))
                                            : format("did you mean [{}]?", near)});
    for (const Field& field : fields())
      if (field.section() == near) findings_.doubtful.insert(field.path);
  }

  void not_a_section(const std::string& section, const toml::node& node) {
    found_.push_back({.what = format("{} is a section, not {}", section, kind_of(node)),
                      .where = place(node.source()),
                      .why = {},
                      .legal = format("[{}] on a line of its own, then its keys", section)});
    for (const Field& field : fields())
      if (field.section() == section) findings_.doubtful.insert(field.path);
  }

  // "model.layers", or "optim.kind or device.kind"; marks them as probably meant.
  std::string paths_with_key(std::string_view key) {
    std::string list;
    for (const Field& field : fields()) {
      if (field.key() != key) continue;
      list += format("{}{}", list.empty() ? "" : " or ", field.path);
      findings_.doubtful.insert(field.path);
    }
    return list;
  }

  static std::string keys_of(const std::string& section) {
    std::string list;
    for (const Field& field : fields())
      if (field.section() == section) list += format("{}{}", list.empty() ? "" : ", ", field.key());
    return list;
  }

  void add(const std::string& path, Problem problem) {
    found_.push_back(std::move(problem));
    findings_.doubtful.insert(path);
  }

  std::string_view name_;
  Findings& findings_;
  std::vector<Assignment> assignments_;
  std::vector<Problem> found_;
};

void unread(Findings& findings, Problem problem) {
  findings.problems.push_back(std::move(problem));
  findings.incomplete = true;
}

}  // namespace

std::vector<Assignment> parse_toml(std::string_view text, std::string_view name,
                                   Findings& findings) {
  if (text.size() > kMaxTomlBytes) {
    unread(findings, {.what = "the configuration file is too large",
                      .where = std::string(name),
                      .why = format("it has {} bytes", text.size()),
                      .legal = format("at most {} bytes", kMaxTomlBytes)});
    return {};
  }
  if (const size_t line = line_nested_too_deep(text); line != 0) {
    unread(findings, {.what = "the configuration file is nested too deeply",
                      .where = format("{}:{}", name, line),
                      .why = {},
                      .legal = "[section] lines with key = value lines below them"});
    return {};
  }
  try {
    return TomlReader(name, findings).read(toml::parse(text));
  } catch (const toml::parse_error& error) {
    unread(findings, {.what = "the configuration file is not valid TOML",
                      .where = format("{}:{}", name, error.source().begin.line),
                      .why = std::string(error.description()),
                      .legal = "[section] lines with key = value lines below them; text between "
                               "quotes. The file was read no further"});
  }
  return {};
}

std::vector<Assignment> read_toml(const std::filesystem::path& path, Findings& findings) {
  std::string text;
  try {
    text = read_text(path, kMaxTomlBytes);
  } catch (const Error& error) {
    unread(findings, {.what = "the configuration file cannot be read",
                      .where = path.string(),
                      .why = error.what(),
                      .legal = format("a TOML file of at most {} bytes", kMaxTomlBytes)});
    return {};
  }
  return parse_toml(text, path.string(), findings);
}

namespace {

// A comment ends with its line: a file name must not break it.
std::string comment(const std::string& text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < ' ' || c == 0x7F ? '?' : c;
  return is_plain_text(out) ? out : "a file whose name is not UTF-8";
}

}  // namespace

std::string print_config(const Config& config, const Origins& origins) {
  std::string out;
  std::string_view section;
  for (const Field& field : fields()) {
    if (field.section() != section) {
      section = field.section();
      out += format("{}[{}]\n", out.empty() ? "" : "\n", section);
    }
    const auto origin = origins.find(field.path);
    const std::string line =
        format("{} = {}", field.key(), toml_text(field, get_value(config, field.path)));
    out += format("{:<40}  # {}\n", line,
                  origin == origins.end() ? "default" : comment(origin->second.text));
  }
  return out;
}

}  // namespace bev

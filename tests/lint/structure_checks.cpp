#include "lint/structure_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lint/definitions.h"

namespace bev::lint {

namespace fs = std::filesystem;

namespace {

bool is_header(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cuh";
}

// The text with every run of white space as one blank.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\n';
    if (!is_blank || (!line.empty() && line.back() != ' ')) line += is_blank ? ' ' : c;
  }
  return line;
}

// --- file names ---

// The place of a folder, or nothing.
std::optional<std::string_view> place_of(std::string_view folder,
                                         std::span<const std::string_view> places) {
  for (const std::string_view place : places) {
    const bool is_inside = place.ends_with('/') && (std::string(folder) + "/").starts_with(place);
    if (folder == place || is_inside) return place;
  }
  return std::nullopt;
}

// --- include order ---

// The groups that clang-format makes after the own header.
int group_of(const Include& include) {
  if (!include.angled) return 2;
  return include.path.ends_with(".h") ? 0 : 1;
}

std::string stem_of(std::string_view path) { return fs::path(path).stem().string(); }

// The own header of a source, also of a test: "base/file.h" of base/file_test.cpp.
bool is_own_header(const Include& include, std::string_view path) {
  const std::string stem = stem_of(path);
  const std::string tested = stem.ends_with("_test") ? stem.substr(0, stem.size() - 5) : stem;
  return !include.angled && (stem_of(include.path) == stem || stem_of(include.path) == tested);
}

void look_at_include_order(const fs::path& root, const Source& source) {
  const std::vector<Include> all = includes(source.text);
  const fs::path path = source.path;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_own = path.extension() == ".cpp" && is_own_header(all[i], source.path) &&
                        (root / "src" / all[i].path).parent_path() == (root / path).parent_path();
    if (is_own && i > 0) {
      source.report(all[i].line, "\"" + all[i].path + "\" is the own header: include it first");
      return;
    }
    // clang-format orders includes on consecutive lines; empty lines may be between them.
    if (i == 0 || is_own_header(all[i - 1], source.path)) continue;
    bool is_consecutive = true;
    for (int line = all[i - 1].line; line + 1 < all[i].line; ++line)
      is_consecutive = is_consecutive && source.text.raw[static_cast<size_t>(line)].empty();
    const std::pair before(group_of(all[i - 1]), all[i - 1].path);
    if (is_consecutive && std::pair(group_of(all[i]), all[i].path) < before)
      source.report(all[i].line, all[i].path + " belongs before " + all[i - 1].path);
  }
}

// --- private terms ---

// Whether the words of the phrase follow one another in the name.
bool has_phrase(std::string_view name, const std::vector<std::string>& phrase) {
  const std::vector<std::string> words = words_of(name);
  return std::search(words.begin(), words.end(), phrase.begin(), phrase.end()) != words.end();
}

void look_at_terms(std::span<const PrivateTerm> terms,
                   const std::vector<std::vector<std::string>>& phrases, const Source& source) {
  const auto look = [&](int line, const std::string& name) {
    for (size_t i = 0; i < terms.size(); ++i)
      if (has_phrase(name, phrases[i]))
        source.report(line, name + ": write " + std::string(terms[i].term));
  };
  for (const fs::path& part : fs::path(source.path)) look(0, part.stem().string());
  for (size_t i = 0; i < source.text.code.size(); ++i) {
    if (source.text.code[i].starts_with("#include")) continue;
    for (const Identifier& name : identifiers(source.text.code[i]))
      look(static_cast<int>(i) + 1, name.text);
  }
}

// --- parameter names ---

struct Literal {
  std::string text;
  size_t begin;
};

std::vector<Literal> literals(const std::string& source) {
  const std::string text = blank_comments(source);
  std::vector<Literal> found;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!opens_literal(text, at)) continue;
    const size_t end = after_literal(text, at);
    found.push_back({text.substr(at + 1, end - at - 2), at});
    at = end - 1;
  }
  return found;
}

// "layers.3.mlp", ".weight": lower-case words joined by dots.
bool is_dotted(std::string_view text) {
  return text.size() > 1 && text.find('.') != std::string_view::npos &&
         text.find("..") == std::string_view::npos &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string_view::npos;
}

// --- unity names ---

bool is_separate(std::string_view path, std::span<const std::string_view> separate) {
  return std::any_of(separate.begin(), separate.end(), [&](std::string_view each) {
    return each.ends_with('/') ? path.starts_with(each) : path.ends_with(each);
  });
}

struct PrivateName {
  std::string path;
  int line;
  std::optional<std::string> alias;  // its text
};

// The sources that a unity build may put into one unit: a folder below src/, below tests/unit/ or
// below tests/.
std::string units_of(std::string_view path) {
  size_t folders = path.starts_with("tests/unit/") ? 3 : 2, end = 0;
  while (folders-- > 0 && end != std::string_view::npos) end = path.find('/', end + 1);
  return std::string(path.substr(0, end));
}

}  // namespace

Report check_folder_size(const fs::path& root, size_t limit) {
  Report report;
  std::map<std::string, size_t> sizes;
  for (const char* top : {"src", "tests"}) {
    for (const fs::path& path : files_below(root / top)) {
      ++report.files;
      ++sizes[path_from(root, path.parent_path())];
    }
  }
  for (const auto& [folder, size] : sizes) {
    if (size <= limit) continue;
    report.findings.push_back({folder, 0,
                               std::to_string(size) + " files, at most " + std::to_string(limit) +
                                   ": move some into sub-folders"});
  }
  return report;
}

Report check_small_files(const fs::path& root, size_t lines, size_t limit) {
  size_t small = 0;
  Report report = for_each_source(root, {"src"}, [&](const Source& source) {
    if (source.text.raw.size() < lines) ++small;
  });
  if (small > limit)
    report.findings.push_back({"src", 0,
                               std::to_string(small) + " files have fewer than " +
                                   std::to_string(lines) + " lines, at most " +
                                   std::to_string(limit) + ": put small ones into one file"});
  return report;
}

Report check_file_names(const fs::path& root, std::span<const std::string_view> op_places) {
  Report report;
  std::map<std::string, std::set<std::string>> folders;  // of each stem
  for (const fs::path& path : files_below(root / "src")) {
    if (!is_cpp(path)) continue;
    ++report.files;
    folders[path.stem().string()].insert(path_from(root, path.parent_path()));
  }
  for (const auto& [stem, in] : folders) {
    std::map<std::string_view, std::string> taken;  // place -> folder
    for (const std::string& folder : in) {
      const std::optional<std::string_view> place = place_of(folder, op_places);
      // A folder that is no place of an op clashes with any other.
      const auto [other, is_first] = taken.emplace(place.value_or(""), folder);
      const bool clashes = !is_first || (taken.size() > 1 && taken.contains(""));
      if (!clashes) continue;
      const std::string& first = is_first ? *in.begin() : other->second;
      report.findings.push_back(
          {folder + "/" + stem, 0, "is also the name of " + first + "/" + stem});
    }
  }
  return report;
}

Report check_type_names(const fs::path& root, std::span<const std::string_view> allowed) {
  Report report;
  std::map<std::string, std::string> first;  // name -> full name
  for (const fs::path& path : files_below(root / "src")) {
    if (!is_header(path)) continue;
    ++report.files;
    const std::string text = read_file(path);
    for (const Definition& type : definitions(text)) {
      if (type.kind != Definition::Kind::Class || !type.at_namespace_scope) continue;
      const std::string name = last_part(type.name);
      const auto [known, is_new] = first.emplace(name, type.name);
      if (is_new || known->second == type.name) continue;
      if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
      report.findings.push_back({path_from(root, path), line_at(text, type.begin),
                                 type.name + ": " + known->second + " has this name"});
    }
  }
  return report;
}

Report check_include_order(const fs::path& root) {
  return for_each_source(root, {"src", "tests"},
                         [&](const Source& source) { look_at_include_order(root, source); });
}

Report check_private_terms(const fs::path& root, std::span<const PrivateTerm> terms) {
  std::vector<std::vector<std::string>> phrases;
  for (const PrivateTerm& term : terms) phrases.push_back(words_of(term.phrase));
  return for_each_source(root, {"src"},
                         [&](const Source& source) { look_at_terms(terms, phrases, source); });
}

Report check_parameter_names(const fs::path& root) {
  std::vector<std::string> names;  // "layers." begins names
  for (const fs::path& path : files_below(root / "src/model")) {
    const std::string from = path_from(root, path);
    if (!from.starts_with("src/model/family/") && from != "src/model/model_spec.h") continue;
    for (const Literal& literal : literals(read_file(path)))
      if (is_dotted(literal.text)) names.push_back(literal.text);
  }
  const auto is_name = [&](const std::string& text) {
    if (text.starts_with(".")) return text.ends_with(".weight") || text.ends_with(".bias");
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return text == name || (name.back() == '.' && text.starts_with(name));
    });
  };
  return for_each_source(root, {"src"}, [&](const Source& source) {
    if (source.path.starts_with("src/model/") || source.path.starts_with("src/convert/")) return;
    const std::string text = read_file(root / source.path);
    for (const Literal& literal : literals(text))
      if (is_name(literal.text))
        source.report(line_at(text, literal.begin),
                      literal.text + " names a parameter: ask for its role");
  });
}

Report check_unity_names(const fs::path& root, std::span<const std::string_view> separate) {
  Report report;
  std::map<std::pair<std::string, std::string>, PrivateName> names;  // units, name(types
  const auto look_at = [&](const fs::path& file) {
    const std::string path = path_from(root, file);
    if (file.extension() != ".cpp" || is_separate(path, separate)) return;
    ++report.files;
    const std::string text = read_file(file);
    for (const Definition& each : definitions(text)) {
      const std::string_view range =
          std::string_view(text).substr(each.begin, each.end - each.begin);
      const bool is_private = each.in_unnamed_namespace || range.starts_with("static ");
      if (!is_private || !each.at_namespace_scope) continue;
      PrivateName name{.path = path, .line = line_at(text, each.begin), .alias = std::nullopt};
      if (each.kind == Definition::Kind::Alias) name.alias = on_one_line(range);
      // Overloads can be in one unit.
      const std::string key = each.name + "(" + each.parameters;
      const auto [known, is_new] = names.emplace(std::pair(units_of(path), key), name);
      const PrivateName& first = known->second;
      if (is_new || first.path == path || (name.alias && name.alias == first.alias)) continue;
      report.findings.push_back({path, name.line,
                                 each.name + " is also in " + first.path + ":" +
                                     std::to_string(first.line) + "; one unity build holds both"});
    }
  };
  for (const char* top : {"src", "tests"})
    for (const fs::path& file : files_below(root / top)) look_at(file);
  return report;
}

}  // namespace bev::lint

#include "config/blend.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "config/parse/notation.h"
#include "config/rules/rule.h"

namespace bev {

ParsedBlend parse_blend(const TextList& list) {
  const auto is_number = [](const std::string& text) { return parse_real(text).has_value(); };
  if (std::any_of(list.begin(), list.end(), [](const std::string& t) { return t.empty(); }))
    return {{}, "an entry is empty"};
  const auto numbers = std::count_if(list.begin(), list.end(), is_number);
  if (numbers == 0) return {Blend{list, {}}};
  if (list.size() % 2 != 0)
    return {{}, format("{} entries are not pairs of a weight and a file", list.size())};
  Blend blend;
  for (size_t i = 0; i < list.size(); i += 2) {
    const auto weight = parse_real(list[i]);
    if (!weight) return {{}, format("{} stands where a weight should", toml_string(list[i]))};
    if (!(*weight > 0))
      return {{}, format("the weight of {} is {}", toml_string(list[i + 1]), list[i])};
    blend.weights.push_back(*weight);
    blend.prefixes.push_back(list[i + 1]);
  }
  return {std::move(blend)};
}

Blend blend_of(const TextList& list) {
  ParsedBlend parsed = parse_blend(list);
  BEV_CHECK(parsed.blend.has_value(), Internal, "a blend was not checked: {}", parsed.why);
  return std::move(*parsed.blend);
}

namespace {

constexpr size_t kFileLimit = size_t{16} << 20;

class Reader {
 public:
  Reader(LoadedConfig& loaded, Findings& findings) : loaded_(loaded), findings_(findings) {}

  void one_list() {
    std::string& path = loaded_.config.data.args_path;
    if (path.empty()) return;
    if (!loaded_.config.data.path.empty()) return given_twice("data.args_path", "data.path");
    attempt("data.args_path", [&] {
      std::istringstream words(read_text(path, kFileLimit));
      TextList list;
      for (std::string word; words >> word;) list.push_back(word);
      take("data.args_path", "data.path", loaded_.config.data.path, std::move(list));
      path.clear();
    });
  }

  void list_per_split() {
    DataConfig& d = loaded_.config.data;
    if (d.split_args_path.empty()) return;
    const std::array<std::pair<std::string, TextList*>, 3> splits{
        {{"train", &d.train_path}, {"valid", &d.valid_path}, {"test", &d.test_path}}};
    for (const auto& [name, list] : splits)
      if (!list->empty()) return given_twice("data.split_args_path", "data." + name + "_path");
    attempt("data.split_args_path", [&] {
      const Json all = read_json(d.split_args_path, {.bytes = kFileLimit});
      if (!all.is_object()) throw Error(ErrorKind::Data, "it is not an object");
      for (const auto& [name, list] : splits) {
        if (!all.contains(name) || all.at(name).is_null()) continue;
        take("data.split_args_path", "data." + name + "_path", *list, texts(all.at(name), name));
      }
      if (d.train_path.empty()) throw Error(ErrorKind::Data, "it has no list \"train\"");
      d.split_args_path.clear();
    });
  }

 private:
  static TextList texts(const Json& list, const std::string& name) {
    TextList out;
    if (!list.is_array()) throw Error(ErrorKind::Data, format("{} is not a list", in_quotes(name)));
    for (const Json& entry : list) {
      if (!entry.is_string() && !entry.is_number())
        throw Error(ErrorKind::Data,
                    format("{} has an entry that is neither text nor a number", in_quotes(name)));
      out.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
    }
    return out;
  }

  void take(const std::string& from, const std::string& to, TextList& field, TextList list) {
    if (list.empty()) throw Error(ErrorKind::Data, "it names no token file");
    for (const std::string& text : list)
      if (!is_plain_text(text)) throw Error(ErrorKind::Data, "it is not UTF-8");
    field = std::move(list);
    loaded_.origins[to] = loaded_.origins[from];
  }

  void attempt(const std::string& field, FunctionRef<void()> read) {
    try {
      read();
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      const RuleInput facts{loaded_.config, Purpose::Plan, loaded_.origins};
      findings_.problems.push_back(
          {.what = format("the blend of {} cannot be read", field),
           .where = facts.where({field}),
           .why = error.what(),
           .legal = field == "data.args_path"
                        ? "weights and token files with blanks between: 0.3 A 0.7 B"
                        : "JSON: {\"train\": [\"0.3\", \"A\", \"0.7\", \"B\"], \"valid\": [...], "
                          "\"test\": [...]}"});
      findings_.incomplete = true;
    }
  }

  void given_twice(std::string_view file, const std::string& field) {
    const RuleInput facts{loaded_.config, Purpose::Plan, loaded_.origins};
    findings_.problems.push_back({.what = "the data is given twice",
                                  .where = facts.where({file, field}),
                                  .why = "the file would replace the list",
                                  .legal = "one of the two"});
    findings_.incomplete = true;
  }

  LoadedConfig& loaded_;
  Findings& findings_;
};

}  // namespace

void read_blend_files(LoadedConfig& loaded, Findings& findings) {
  Reader reader(loaded, findings);
  reader.one_list();
  reader.list_per_split();
}

}  // namespace bev

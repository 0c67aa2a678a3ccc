#include "config/parse/help.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/format.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/field.h"
#include "config/parse/notation.h"
#include "config/parse/value.h"

namespace bev {

namespace {

constexpr size_t kIndent = 6;

// "VALUE" by type, for the line that names the flag.
std::string_view placeholder(const Field& field) {
  switch (field.type) {
    case FieldType::Integer: return " N";
    case FieldType::Real: return " X";
    case FieldType::Text: return " TEXT";
    case FieldType::Choice: return " NAME";
    case FieldType::List: return " TEXT ...";
    case FieldType::Boolean: break;
  }
  return "";
}

std::string default_text(const Field& field) {
  const std::string text = plain_text(field, field.standard);
  const auto* number = std::get_if<int64_t>(&field.standard);
  // A default below the range means that the user has to say.
  if (number != nullptr && static_cast<double>(*number) < field.about.min) return "must be given";
  return text.empty() ? "default: none" : "default: " + text;
}

std::string alias_text(const Field& field, const Alias& alias) {
  if (alias.part > 0) return format("{} (its value number {})", alias.flag, alias.part);
  if (alias.sets.empty()) return std::string(alias.flag);
  if (field.type == FieldType::Boolean && alias.sets == "true") return std::string(alias.flag);
  return format("{} (= {})", alias.flag, alias.sets);
}

std::string facts_of(const Field& field) {
  std::string text;
  if (field.type == FieldType::Choice) text = legal_values(field) + "; ";
  const bool number = field.type == FieldType::Integer || field.type == FieldType::Real;
  if (number && (std::isfinite(field.about.min) || std::isfinite(field.about.max))) {
    const std::string legal = legal_values(field);
    text = legal.substr(legal.find(", ") + 2) + "; ";
  }
  return text + default_text(field);
}

void add_field(std::string& out, const Field& field, size_t columns) {
  const std::string margin(kIndent, ' ');
  out += format("  --{}{}\n", field.path, placeholder(field));
  out += margin + wrap(field.about.help, columns, kIndent) + "\n";
  out += margin + wrap("[" + facts_of(field) + "]", columns, kIndent) + "\n";
  if (field.about.aliases.empty()) return;
  std::string aliases = "also ";
  for (const Alias& alias : field.about.aliases) {
    if (aliases.size() > 5) aliases += ", ";
    aliases += alias_text(field, alias);
  }
  out += margin + wrap(aliases, columns, kIndent) + "\n";
}

}  // namespace

std::string wrap(std::string_view text, size_t columns, size_t indent) {
  const size_t width = std::max<size_t>(20, columns > indent ? columns - indent : 0);
  std::string out;
  size_t used = 0;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word.empty()) continue;
    if (used > 0 && used + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      used = 0;
    }
    if (used > 0) {
      out += ' ';
      ++used;
    }
    out += word;
    used += word.size();
  }
  return out;
}

std::string own_flags_help(std::span<const VerbFlag> own, size_t columns) {
  std::string out;
  for (const VerbFlag& flag : own) {
    const std::string name =
        flag.value.empty() ? std::string(flag.name) : format("{} {}", flag.name, flag.value);
    constexpr size_t kColumn = 26;
    if (name.size() + 4 <= kColumn) {
      out += format("  {:<{}}", name, kColumn - 2);
    } else {
      out += format("  {}\n{}", name, std::string(kColumn, ' '));
    }
    out += wrap(flag.help, columns, kColumn) + "\n";
  }
  return out;
}

std::string fields_help(size_t columns) {
  std::string out;
  std::string_view section;
  for (const Field& field : fields()) {
    if (field.section() != section) {
      section = field.section();
      out += format("\n[{}]  {}\n", section, field.section_title);
    }
    add_field(out, field, columns);
  }
  return out;
}

namespace {

constexpr size_t kColumns = 110;

// A bar would end the cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) { return text.empty() ? "" : format("`{}`", text); }

std::string_view type_name(const Field& field) {
  switch (field.type) {
    case FieldType::Integer: return "integer";
    case FieldType::Real: return "number";
    case FieldType::Boolean: return "boolean";
    case FieldType::Text: return "text";
    case FieldType::Choice: return "choice";
    case FieldType::List: return "list of texts";
  }
  return {};
}

std::string legal_cell(const Field& field) {
  if (field.type == FieldType::Choice) {
    std::string list;
    for (const std::string_view choice : field.choices)
      list += (list.empty() ? "" : ", ") + code(choice);
    return list;
  }
  const bool bounded = std::isfinite(field.about.min) || std::isfinite(field.about.max);
  if (!bounded) return {};
  const std::string legal = legal_values(field);
  return legal.substr(legal.find(", ") + 2);
}

std::string default_cell(const Field& field) {
  const auto* number = std::get_if<int64_t>(&field.standard);
  if (number != nullptr && static_cast<double>(*number) < field.about.min) return "must be given";
  return code(toml_text(field, field.standard));
}

std::string alias_cell(const Field& field, const Alias& alias) {
  std::string text = code(alias.flag);
  const bool plain = field.type == FieldType::Boolean && alias.sets == "true";
  if (!alias.sets.empty() && !plain) {
    text += format(" = {}", code(alias.sets));
    if (!alias.only_from.empty()) text += format(" instead of {}", code(alias.only_from));
  }
  std::vector<std::string> remarks;
  if (alias.part > 0) remarks.push_back(format("its value number {}", alias.part));
  if (alias.reads != nullptr) remarks.emplace_back("in Megatron-LM's notation");
  for (size_t i = 0; i < alias.values.size(); ++i)
    for (const std::string_view word : split_words(alias.values[i]))
      if (word != field.choices[i])
        remarks.push_back(format("{} = {}", code(word), code(field.choices[i])));
  for (const std::string_view word : split_words(alias.later))
    remarks.push_back(format("{} not yet", code(word)));
  return remarks.empty() ? text : format("{} ({})", text, fmt::join(remarks, ", "));
}

std::string field_row(const Field& field) {
  std::string aliases;
  for (const Alias& alias : field.about.aliases)
    aliases += (aliases.empty() ? "" : ", ") + alias_cell(field, alias);
  return format("| {} | {} | {} | {} | {} | {} |\n", code(field.key()), type_name(field),
                default_cell(field), legal_cell(field), cell(field.about.help), cell(aliases));
}

std::string all_sections() {
  std::string out;
  std::string_view section;
  for (const Field& field : fields()) {
    if (field.section() != section) {
      section = field.section();
      out += format(
          "\n### [{}]: {}\n\n"
          "| field | type | default | range or choices | meaning | flags of Megatron-LM |\n"
          "| --- | --- | --- | --- | --- | --- |\n",
          section, field.section_title);
    }
    out += field_row(field);
  }
  return out;
}

std::string renamed_fields() {
  std::string out =
      "\n### Renamed fields\n\n"
      "Earlier names are still read from flags, files and checkpoints; a note gives the new "
      "one.\n\n"
      "| earlier | now |\n| --- | --- |\n";
  for (const Field& field : fields())
    if (const std::string former = former_path(field); !former.empty())
      out += format("| {} | {} |\n", code(former), code(field.path));
  return out;
}

// Entries with commas between, in lines of at most kColumns where an entry allows it. An entry
// stays on one line.
std::string comma_list(const std::vector<std::string>& entries) {
  std::string out;
  size_t used = 0;
  for (const std::string& entry : entries) {
    if (used > 0) {
      const bool fits = used + 2 + entry.size() < kColumns;
      out += fits ? ", " : ",\n";
      used = fits ? used + 2 : 0;
    }
    out += entry;
    used += entry.size();
  }
  return out;
}

// The flags of a topic, each with the value that works.
std::string topic_text(const FlagTopic& topic) {
  const bool later = topic.kind == FlagClass::Later;
  std::vector<std::string> entries;
  for (const MegatronFlag& flag : topic.flags) {
    for (const std::string_view spelling : split_words(flag.flag)) {
      const bool valued = later && !flag.standard.empty();
      std::string entry = valued ? format("`{} {}`", spelling, flag.standard) : code(spelling);
      if (later && flag.takes == "off") entry += " (works)";
      entries.push_back(std::move(entry));
    }
  }
  return format("\n**{}**: {}.\n{}\n", topic.title, topic.reason, comma_list(entries));
}

std::string all_topics(FlagClass kind) {
  std::string out;
  for (const FlagTopic& topic : megatron_topics())
    if (topic.kind == kind) out += topic_text(topic);
  return out;
}

}  // namespace

std::string configuration_page() {
  std::string out =
      "# Configuration\n\n"
      "`bevatron help configuration` prints this page; `make docs` writes it. A field is written "
      "as\n"
      "`field = value` below `[section]` in a TOML file, or as `--section.field value` on the "
      "command\n"
      "line, or as a flag of Megatron-LM where it has one. Flags win over the file, the file over\n"
      "the preset, the preset over the default. Integers may be written `1_000_000` or `1e6`.\n"
      "`--print-config` prints the whole configuration with where each value comes from.\n\n"
      "## Fields\n";
  out += all_sections();
  out += renamed_fields();
  out +=
      "\n## Flags of Megatron-LM without a field\n\n"
      "All flags of Megatron-LM from 2019 to 2026 are known. A flag that is in no table of this "
      "page\n"
      "is a mistake, and the nearest one is named.\n\n"
      "### Not in this version\n\n"
      "These would change the numbers, the model, the data, what is written or when a run ends. A\n"
      "flag with a value behind it here works with this value, its default; everything else is\n"
      "refused.\n";
  out += all_topics(FlagClass::Later);
  out +=
      "\n### Without meaning\n\n"
      "These change nothing here. They are accepted, and a line says so.\n";
  out += all_topics(FlagClass::Noted);
  return out;
}

}  // namespace bev

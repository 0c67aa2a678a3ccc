#include "config/parse/help.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

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

std::string own_flags_help(std::span<const OwnFlag> own, size_t columns) {
  std::string out;
  for (const OwnFlag& flag : own) {
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

}  // namespace bev

#include "config/parse/print_config.h"

#include "base/format.h"
#include "config/parse/field.h"

namespace bev {

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

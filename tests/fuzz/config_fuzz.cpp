// libFuzzer: any bytes as a configuration file give values or problems, and what passes the check
// prints to a text that reads back to the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/parse/toml.h"
#include "config/resolve.h"
#include "config/rules/config_check.h"

namespace {

bev::Config apply(const std::vector<bev::Assignment>& assignments) {
  bev::Config config;
  for (const bev::Assignment& a : assignments) bev::set_value(config, a.field->path, a.value);
  return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bev::Findings findings;
  const bev::Config config = apply(bev::parse_toml(text, "fuzz.toml", findings));
  const std::vector<bev::Problem> violations =
      bev::check(config, bev::Purpose::Train, {}, findings);
  if (!findings.problems.empty()) (void)bev::report(findings.problems);
  if (!findings.problems.empty() || !violations.empty()) return 0;
  (void)bev::resolve_model(config);
  (void)bev::resolve_batch(config);
  const std::string printed = bev::print_config(config);
  bev::Findings again;
  const bev::Config copy = apply(bev::parse_toml(printed, "printed.toml", again));
  if (!again.problems.empty() || bev::print_config(copy) != printed) std::abort();
  return 0;
}

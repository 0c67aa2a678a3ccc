// bevatron status: what a run is doing.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "app/cli/cli_flags.h"
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/text_table.h"
#include "report/status_report.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

constexpr double kWatchSeconds = 2;

constexpr std::array<VerbFlag, 2> kStatusFlags{{
    {"--json", "", "print one JSON object with stable keys instead of a table"},
    {"--watch", "[SECONDS]",
     "look again every so many seconds (2) until the run has ended: on a terminal the table is "
     "drawn anew, elsewhere each look is a line"},
}};

std::string table_of(const StatusReport& report) {
  TextTable table("{:<14} {}");
  for (const StatusRow& row : report.rows) table(row.name, row.text);
  for (const std::string& note : report.notes) table.text += format("note: {}\n", note);
  return table.text;
}

std::string json_of(const RunInfo& facts, int indent) {
  return to_json(facts, unix_seconds()).dump(indent, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

// Lines that fit: one that wraps could not be taken back by going up. Returns how many there are.
size_t draw(const std::string& table, size_t columns) {
  size_t lines = 0;
  for (size_t begin = 0; begin < table.size(); ++lines) {
    const size_t end = table.find('\n', begin);
    std::string line = table.substr(begin, end - begin);
    if (line.size() >= columns) line = harmless(line, columns - 1);
    fmt::print("{}\n", line);
    begin = end + 1;
  }
  return lines;
}

// Ctrl-C ends it as it ends any program: nothing has to be put back.
void watch(const fs::path& folder, double seconds, bool as_json) {
  const size_t columns = as_json ? 0 : terminal_columns(STDOUT_FILENO);
  size_t drawn = 0;
  RunInfo facts;
  while (true) {
    facts = run_facts(folder, &facts);
    const StatusReport report = describe(facts, unix_seconds());
    if (as_json) {
      fmt::print("{}", json_of(facts, -1));
    } else if (columns == 0) {
      fmt::print("{}\n", report.line);
    } else {
      // Up to the first line of the last table, which goes.
      if (drawn > 0) fmt::print("\x1b[{}A\x1b[J", drawn);
      // The last one stays, and nothing will be drawn over it.
      drawn = draw(table_of(report), is_over(report.state) ? std::string::npos : columns);
    }
    const bool is_read = std::fflush(stdout) == 0;
    // Of a run without a status nobody will ever know that it has ended.
    const bool has_status = facts.status || !facts.status_problem.empty();
    if (!is_read || is_over(report.state) || !has_status) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

}  // namespace

int status(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "status",
       .summary = "Says what the run in the folder RUN (train.output) is doing, how far it is and "
                  "whether all is well, on any machine that sees the folder, while it goes on and "
                  "afterwards. Exit code 0: the folder is that of a run, in whatever state (--json "
                  "has it as \"state\"); 3: it is not.",
       .flags = kStatusFlags,
       .positional = "RUN",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  const fs::path folder = flags->positional().front();
  const double seconds = flags->real("--watch", kWatchSeconds, 0.1, 86400);
  if (flags->has("--watch")) {
    watch(folder, seconds, flags->has("--json"));
  } else if (flags->has("--json")) {
    fmt::print("{}", json_of(run_facts(folder), 2));
  } else {
    fmt::print("{}", table_of(describe(run_facts(folder), unix_seconds())));
  }
  return 0;
}

}  // namespace bev::app

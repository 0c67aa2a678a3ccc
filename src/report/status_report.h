// What `bevatron status` says, as a pure function of what is known and the time.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "report/run_info.h"

namespace bev::app {

enum class RunState : uint8_t {
  Starting,
  Training,
  Evaluating,
  Saving,
  Ended,
  Failed,
  Crashed,  // its process is gone and has said nothing about its end
  Silent,   // nothing was heard of it for a while, and nobody knows whether it lives
  Unknown,  // there is no status
};

std::string_view name_of(RunState state);

// Whether more can be heard of the run.
bool is_over(RunState state);

struct StatusRow {
  std::string name, text;
};

struct StatusReport {
  RunState state = RunState::Unknown;
  std::vector<StatusRow> rows;
  std::vector<std::string> notes;  // what is missing or odd, a sentence each
  std::string line;                // all in one, for a log
  std::string next;                // the command that continues the run; empty: there is none
};

// `now`: seconds since 1970.
StatusReport describe(const RunFacts& facts, double now);

// The same for programs; docs/running.md has the keys.
Json to_json(const RunFacts& facts, double now);

}  // namespace bev::app

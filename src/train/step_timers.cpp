#include "train/step_timers.h"

#include <cmath>
#include <set>
#include <sstream>

#include "base/format.h"
#include "comm/communicator.h"

namespace bev {

namespace {

// Names end in dots up to this column.
constexpr size_t kNameColumns = 48;

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }
double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

// Ranks of a pipeline run different ops: the names of all, in one order.
std::set<std::string> all_names(Communicator& world, const std::set<std::string>& own) {
  if (world.size() == 1) return own;
  std::set<std::string> all;
  for (int rank = 0; rank < world.size(); ++rank) {
    std::string list;
    for (const std::string& name : own) list += all.contains(name) ? "" : name + "\n";
    std::istringstream lines(broadcast_text(world, list, rank));
    for (std::string line; std::getline(lines, line);) all.insert(line);
  }
  return all;
}

}  // namespace

void StepTimers::add(std::string_view name, double seconds) {
  const auto found = seconds_.find(name);
  if (found == seconds_.end()) {
    seconds_.emplace(std::string(name), seconds);
  } else {
    found->second += seconds;
  }
}

void StepTimers::add(const StepResult& result) {
  add("forward-backward", result.times.forward_backward);
  add("all-grads-sync", result.times.gradients);
  add("optimizer", result.times.optimizer);
  if (result.waited > 0) add("waiting-for-ranks", result.waited);
}

void StepTimers::add(const std::vector<OpSpan>& spans) {
  for (const OpSpan& span : spans) add(format("op {}", span.op), span.end - span.begin);
}

std::string StepTimers::take_table(Communicator& world) {
  if (iterations_ == 0) return "";
  std::set<std::string> own;
  for (const auto& [name, seconds] : seconds_) own.insert(name);
  std::string table = whose_ == TimedRanks::Max      ? "max time across ranks (ms):"
                      : whose_ == TimedRanks::MinMax ? "(min, max) time across ranks (ms):"
                                                     : "times across ranks (ms):";
  for (const std::string& name : all_names(world, own)) {
    const auto found = seconds_.find(name);
    const double mean =
        found == seconds_.end() ? 0 : found->second / static_cast<double>(iterations_);
    const std::string dots(name.size() < kNameColumns ? kNameColumns - name.size() : 1, '.');
    table += format("\n    {} {}:", name, dots);
    const int64_t here = nanoseconds(mean);
    if (whose_ == TimedRanks::All) {
      for (int rank = 0; rank < world.size(); ++rank)
        table += format("\n     rank {:2d}: {:.2f}", rank,
                        milliseconds(world.all_reduce_max_host(rank == world.rank() ? here : 0)));
      continue;
    }
    const int64_t most = world.all_reduce_max_host(here);
    const int64_t least = whose_ == TimedRanks::MinMax ? -world.all_reduce_max_host(-here) : 0;
    table += whose_ == TimedRanks::Max
                 ? format(" {:.2f}", milliseconds(most))
                 : format(" ({:.2f}, {:.2f})", milliseconds(least), milliseconds(most));
  }
  seconds_.clear();
  iterations_ = 0;
  return table;
}

}  // namespace bev

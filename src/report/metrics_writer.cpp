#include "report/metrics_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <sstream>

#include "base/check.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"

namespace bev {

namespace {

// JSON has no word for them.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// {"lm_loss": 2.5}; of several losses also their weighted sum: {"loss": 3.2, "lm_loss": 2.5, ...}.
// Accuracies have their own name: {"top1_accuracy": 40}.
void add_losses(Json& line, const LossMeans& losses, double total) {
  if (losses.end() - losses.begin() > 1) line["loss"] = number(total);
  for (const LossMean& loss : losses) {
    const std::string_view ending = is_accuracy(loss.name) ? "" : "_loss";
    line[format("{}{}", loss.name, ending)] = number(loss.value);
  }
}

// What happened to a run did happen, whatever is done again.
bool is_kept(const Json& json) {
  const std::string event = json.value("event", "");
  return event == "guard" || event == "control" || event == "end";
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path) : path_(path) { open(); }

MetricsWriter::~MetricsWriter() { ::close(descriptor_); }

void MetricsWriter::forget_after(int64_t iteration) {
  std::istringstream lines(read_text(path_));
  std::string kept;
  bool drops = false;
  for (std::string line; std::getline(lines, line);) {
    // A line that a killed run left half written counts as not there.
    const Json json = Json::parse(line, nullptr, false);
    const bool is_whole = json.is_object();
    const auto number = is_whole ? json.find("iteration") : json.end();
    const bool is_later = is_whole && !is_kept(json) && number != json.end() &&
                          number->is_number_integer() && number->get<int64_t>() > iteration;
    if (is_whole && !is_later) {
      kept += line + "\n";
    } else {
      drops = true;
    }
  }
  if (!drops) return;
  AtomicFile file(path_);
  file.write(kept);
  file.commit();
  open();
}

void MetricsWriter::open() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  BEV_CHECK(descriptor_ >= 0, Data, "cannot write {}: {}", path_.string(), std::strerror(errno));
}

void MetricsWriter::start(int64_t parameters, int64_t iterations) {
  write_line(Json{{"event", "start"},
                  {"time", static_cast<int64_t>(std::time(nullptr))},
                  {"parameters", parameters},
                  {"iterations", iterations}}
                 .dump());
}

void MetricsWriter::add(const Progress& p) {
  Json line{{"event", "iteration"},
            {"iteration", p.iteration},
            {"consumed_samples", p.samples},
            {"global_batch", p.batch}};
  add_losses(line, p.result.losses, p.result.loss);
  line.update({{"grad_norm", number(p.result.grad_norm)},
               {"learning_rate", number(p.result.lr)},
               {"loss_scale", number(p.result.loss_scale)},
               {"applied", p.result.applied},
               {"seconds", number(p.seconds)},
               {"tokens_per_second", number(p.tokens_per_second)}});
  write_line(line.dump());
}

void MetricsWriter::add(const Validation& v) {
  Json line{{"event", v.split}, {"iteration", v.iteration}, {"samples", v.samples}};
  add_losses(line, v.losses, v.loss);
  line["seconds"] = number(v.seconds);
  write_line(line.dump());
}

void MetricsWriter::add(std::string_view event, int64_t iteration, const std::string& text) {
  write_line(Json{
      {"event", event},
      {"iteration", iteration},
      {"time", static_cast<int64_t>(std::time(nullptr))},
      {"text",
       text}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void MetricsWriter::write_line(std::string line) {
  if (failure_) return;
  line += '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t put = ::write(descriptor_, line.data() + done, line.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      failure_ = format("{} is incomplete: {}", path_.string(), std::strerror(errno));
      return;
    }
    done += static_cast<size_t>(put);
  }
}

}  // namespace bev

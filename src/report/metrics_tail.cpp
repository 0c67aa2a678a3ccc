#include "report/metrics_tail.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"

namespace bev {

namespace {

constexpr size_t kTailBytes = size_t{256} << 10, kFirstBytes = 4096;

std::string read_part(const PositionedFile& file, size_t begin, size_t bytes) {
  std::string text(std::min(bytes, file.size() - begin), '\0');
  file.read(begin, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::optional<double> number_in(const Json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

int64_t count_in(const Json& line, const char* name) {
  const auto found = line.find(name);
  const bool is_count = found != line.end() && found->is_number_unsigned() &&
                        found->get<uint64_t>() <= uint64_t{1} << 62;
  return is_count ? found->get<int64_t>() : 0;
}

// What a line adds to what later ones have said.
class Gathered {
 public:
  void add(std::string_view text) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return;
    const auto event = line.find("event");
    if (event == line.end()) return;
    if (*event == "iteration" && metrics.iteration == 0) {
      metrics.iteration = count_in(line, "iteration");
      metrics.samples = count_in(line, "consumed_samples");
      metrics.loss = number_in(line, "lm_loss");
      metrics.grad_norm = number_in(line, "grad_norm");
      metrics.learning_rate = number_in(line, "learning_rate");
      metrics.seconds = number_in(line, "seconds");
      metrics.tokens_per_second = number_in(line, "tokens_per_second");
    } else if (*event == "validation" && !metrics.valid_loss) {
      metrics.valid_loss = number_in(line, "lm_loss");
    } else if (*event == "start" && metrics.iterations == 0) {
      metrics.iterations = count_in(line, "iterations");
    }
  }
  bool is_complete() const {
    return metrics.iteration > 0 && metrics.valid_loss && metrics.iterations > 0;
  }

  LastMetrics metrics{};
};

}  // namespace

std::optional<LastMetrics> read_metrics_tail(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  BEV_CHECK(S_ISREG(info.st_mode), Data, "{} is not a regular file", path.string());
  const PositionedFile file(path);
  const size_t begin = file.size() - std::min(file.size(), kTailBytes);
  const std::string text = read_part(file, begin, kTailBytes);
  std::string_view rest = text;  // its first line may be half of one, and is no JSON then
  Gathered gathered;
  while (!rest.empty() && !gathered.is_complete()) {
    if (rest.back() == '\n') rest.remove_suffix(1);
    const size_t end = rest.rfind('\n');
    gathered.add(end == std::string_view::npos ? rest : rest.substr(end + 1));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(0, end + 1);
  }
  if (gathered.metrics.iterations == 0) {
    const std::string first = read_part(file, 0, kFirstBytes);
    gathered.add(std::string_view(first).substr(0, first.find('\n')));
  }
  gathered.metrics.written = static_cast<double>(info.st_mtim.tv_sec);
  return gathered.metrics;
}

}  // namespace bev

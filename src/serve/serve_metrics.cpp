#include "serve/serve_metrics.h"

#include <algorithm>

#include "base/format.h"
#include "base/process.h"

namespace bev {

namespace {

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class Number>
std::string single(std::string_view name, std::string_view type, std::string_view help,
                   Number value) {
  return head(name, type, help) + format("{} {}\n", name, value);
}

bool is_generating(const HttpRecord& record) {
  return record.route == "/v1/completions" || record.route == "/api";
}

}  // namespace

void Histogram::add(double value) {
  const auto* edge = std::lower_bound(kEdges.begin(), kEdges.end(), value);
  ++counts_[static_cast<size_t>(edge - kEdges.begin())];
  sum_ += value;
}

std::string Histogram::lines(std::string_view name, std::string_view help) const {
  std::string text = head(name, "histogram", help);
  int64_t below = 0;
  for (size_t i = 0; i < kEdges.size(); ++i) {
    below += counts_[i];
    text += format("{}_bucket{{le=\"{}\"}} {}\n", name, kEdges[i], below);
  }
  below += counts_.back();
  text += format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, below, sum_);
  return text;
}

void ServeMetrics::request(const HttpRecord& record) {
  ++requests_[{record.route.empty() ? "other" : record.route, record.status}];
  if (is_generating(record) && record.status == 200) seconds_.add(record.seconds);
}

std::string ServeMetrics::page(const ServiceCounts& counts, size_t connections,
                               bool has_failed) const {
  std::string text =
      head("bevatron_requests_total", "counter", "Requests that ended, 499: the client went away.");
  for (const auto& [what, count] : requests_)
    text += format("bevatron_requests_total{{endpoint=\"{}\",code=\"{}\"}} {}\n", what.first,
                   what.second, count);
  text += seconds_.lines("bevatron_request_seconds", "Time of generating requests, whole answers.");
  text += first_token_.lines("bevatron_first_token_seconds",
                             "From a request to its first token, waiting included.");
  text += single("bevatron_prompt_tokens_total", "counter", "Tokens of prompts that were computed.",
                 counts.prompt_tokens);
  text += single("bevatron_generated_tokens_total", "counter", "Tokens that were made.",
                 counts.generated_tokens);
  text += head("bevatron_texts_total", "counter", "Texts by what became of them.");
  text += format("bevatron_texts_total{{end=\"finished\"}} {}\n", counts.finished);
  text += format("bevatron_texts_total{{end=\"cancelled\"}} {}\n", counts.cancelled);
  text += format("bevatron_texts_total{{end=\"refused\"}} {}\n", counts.refused);
  text +=
      single("bevatron_texts_waiting", "gauge", "Texts that wait for their turn.", counts.waiting);
  text += single("bevatron_texts_running", "gauge", "Texts that are being made.", counts.running);
  text += single("bevatron_steps_total", "counter", "Steps of the model.", counts.steps);
  text += single("bevatron_busy_seconds_total", "counter", "Time the model was at work.",
                 counts.busy_seconds);
  text += single("bevatron_cache_pages", "gauge", "Pages of the cache of keys and values.",
                 counts.pages);
  text += single("bevatron_cache_pages_free", "gauge", "Pages of it that nobody uses.",
                 counts.free_pages);
  text += single("bevatron_connections", "gauge", "Open connections.", connections);
  text += single("bevatron_failed", "gauge", "1: the model has failed and the server ends.",
                 has_failed ? 1 : 0);
  text += single("process_resident_memory_bytes", "gauge", "Memory of the process in use.",
                 static_cast<int64_t>(resident_bytes()));
  return text;
}

}  // namespace bev

#include "serve/monitoring.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/json.h"
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
  return record.route == "/v1/completions" || record.route == "/v1/embeddings" ||
         record.route == "/v1/fill-mask" || record.route == "/api";
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

using std::chrono::steady_clock;

namespace {

// Then it is enough that the model gets on with other texts.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

// Somebody who waits for the result.
class HealthCheck::Question final : public HttpJob {
 public:
  Question(HealthCheck& check, HttpAnswer& to_answer) : answer(to_answer), check_(check) {
    check_.asking_.insert(this);
  }
  ~Question() override { check_.asking_.erase(this); }

  HttpAnswer& answer;

 private:
  HealthCheck& check_;
};

HealthCheck::HealthCheck(const ServedModel& model, PostCall post, std::chrono::milliseconds valid,
                         std::chrono::milliseconds limit)
    : model_(model), post_(std::move(post)), valid_(valid), limit_(limit) {}

HttpResponse HealthCheck::response() const {
  const bool is_well = problem_.empty();
  Json json{{"status", is_well ? "ok" : "failed"}};
  if (!is_well) json["reason"] = problem_;
  return {.status = is_well ? 200 : 503,
          .content_type = "application/json",
          .body = json_text(json),
          .headers = {{"Cache-Control", "no-store"}}};
}

std::unique_ptr<HttpJob> HealthCheck::ask(HttpAnswer& answer) {
  const std::string failure = model_.monitored().failure();
  if (!failure.empty()) {
    problem_ = failure;
    valid_until_ = steady_clock::now() + valid_;
  }
  if (steady_clock::now() < valid_until_) {
    answer.send(response());
    return nullptr;
  }
  auto question = std::make_unique<Question>(*this, answer);
  if (!is_probing_) begin();
  return question;
}

void HealthCheck::begin() {
  is_probing_ = true;
  steps_ = model_.monitored().counts().steps;
  began_ = steady_clock::now();
  if (model_.encoder != nullptr) return begin_encoding();
  probe_ = std::make_unique<GenerationGroup>(
      *model_.service, *model_.tokenizer, post_, [this](const TextUpdate& update) {
        if (update.is_end && is_probing_)
          conclude(update.event->finish == FinishReason::Failed ? "the model failed to make a token"
                                                                : "");
      });
  WantedText wanted{.request = {.prompt = {model_.end >= 0 ? model_.end : 0},
                                .tokens = 1,
                                .choice = {.temperature = 0}}};
  if (model_.source) model_.source->apply(wanted.request);
  std::vector<WantedText> one;
  one.push_back(std::move(wanted));
  const std::optional<ApiError> problem = probe_->submit(std::move(one), 0);
  // Where too many wait, tick() sees whether they get on.
  if (problem && problem->status != 429) conclude(problem->message);
}

void HealthCheck::begin_encoding() {
  EncoderRequest one{.pooling = Pooling::Cls};
  one.inputs.push_back({.ids = model_.bert->wrapped({})});
  const auto number = ++encodings_;
  EncoderService::Answer answer = model_.encoder->submit(
      std::move(one), [check = self_, post = post_, number](const EncoderResult* result) {
        post([check, number, has_failed = result == nullptr] {
          HealthCheck* self = *check;
          if (self != nullptr && self->is_probing_ && self->encodings_ == number)
            self->conclude(has_failed ? "the model failed to encode a text" : "");
        });
      });
  encoding_ = std::move(answer.ticket);
  // If too many wait, tick() sees whether the model gets on.
  if (encoding_ == nullptr && !answer.is_full) conclude(answer.refusal);
}

void HealthCheck::conclude(const std::string& problem) {
  is_probing_ = false;
  problem_ = problem;
  valid_until_ = steady_clock::now() + valid_;
  for (Question* question : asking_) question->answer.send(response());
  asking_.clear();
}

void HealthCheck::tick() {
  if (!is_probing_) return;
  const auto passed = steady_clock::now() - began_;
  const std::string failure = model_.monitored().failure();
  if (!failure.empty()) {
    conclude(failure);
  } else if (passed >= kPatience && model_.monitored().counts().steps > steps_) {
    conclude("");
  } else if (passed >= limit_) {
    conclude(format("no {} within {} s",
                    model_.encoder != nullptr ? "text was encoded" : "token was made",
                    limit_.count() / 1000));
  } else {
    return;
  }
  probe_.reset();
  encoding_.reset();
}

}  // namespace bev

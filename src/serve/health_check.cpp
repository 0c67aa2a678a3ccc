#include "serve/health_check.h"

#include <utility>

#include "base/format.h"
#include "serve/json_text.h"

namespace bev {

using std::chrono::steady_clock;

namespace {

// Then it is enough that the model gets on with other texts.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

// Somebody who waits for the result.
class HealthCheck::Question final : public HttpWork {
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

std::unique_ptr<HttpWork> HealthCheck::ask(HttpAnswer& answer) {
  const std::string failure = model_.service->failure();
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
  steps_ = model_.service->counts().steps;
  began_ = steady_clock::now();
  probe_ = std::make_unique<TextGroup>(
      *model_.service, *model_.tokenizer, post_, [this](const TextUpdate& update) {
        if (update.is_end && is_probing_)
          conclude(update.event->finish == Finish::Failed ? "the model failed to make a token"
                                                          : "");
      });
  WantedText wanted{.request = {.prompt = {model_.end >= 0 ? model_.end : 0},
                                .tokens = 1,
                                .choice = {.temperature = 0}}};
  std::vector<WantedText> one;
  one.push_back(std::move(wanted));
  const std::optional<ApiError> problem = probe_->submit(std::move(one), 0);
  // Where too many wait, tick() sees whether they get on.
  if (problem && problem->status != 429) conclude(problem->message);
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
  const std::string failure = model_.service->failure();
  if (!failure.empty()) {
    conclude(failure);
  } else if (passed >= kPatience && model_.service->counts().steps > steps_) {
    conclude("");
  } else if (passed >= limit_) {
    conclude(format("no token was made within {} s", limit_.count() / 1000));
  } else {
    return;
  }
  probe_.reset();
}

}  // namespace bev

#include "serve/megatron_job.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "serve/generation_job.h"

namespace bev {

MegatronJob::MegatronJob(const ServedModel& model, MegatronRequest request, HttpAnswer& answer,
                         PostCall post, ServeMetrics& metrics, WorkClock& clock)
    : TimedJob(clock),
      model_(model),
      request_(std::move(request)),
      answer_(answer),
      metrics_(metrics),
      began_(seconds_now()),
      texts_(*model.service, *model.tokenizer, std::move(post),
             [this](const TextUpdate& update) { on_update(update); }) {}

std::optional<ApiError> encode_prompt(const ServedModel& model, const MegatronRequest& request,
                                      const RequestPrompt& prompt, std::vector<int32_t>& ids) {
  if (model.source) {
    if (request.adds_begin)
      return ApiError{.message = "add_BOS: no token begins a text that an encoder reads",
                      .param = "add_BOS"};
    if (request.tokens == 0)
      return ApiError{.message =
                          "tokens_to_generate 0: an encoder gives the tokens of a prompt no "
                          "probabilities",
                      .param = "tokens_to_generate"};
    if (std::string problem = encode_source(model, prompt, ids); !problem.empty())
      return ApiError{.message = std::move(problem), .param = "prompts"};
    return {};
  }
  try {
    model.tokenizer->encode_begun(prompt.text, ids);
  } catch (const Error& error) {
    return ApiError{.message = error.what(), .param = "prompts"};
  }
  if (request.adds_begin) {
    const int32_t begin = model.begin >= 0 ? model.begin : model.end;
    if (begin < 0)
      return ApiError{.message = "this model has no token that begins a text", .param = "add_BOS"};
    // The vocabulary may have put it there already.
    if (ids.empty() || ids.front() != begin) ids.insert(ids.begin(), begin);
  }
  if (ids.empty()) return ApiError{.message = "a prompt has no tokens", .param = "prompts"};
  const auto tokens = static_cast<int64_t>(ids.size());
  if (tokens + request.tokens > model.limits.context)
    return ApiError{.message = format("a prompt has {} tokens, with tokens_to_generate {} that is "
                                      "more than the {} of this model",
                                      tokens, request.tokens, model.limits.context),
                    .param = "prompts"};
  return {};
}

std::optional<ApiError> MegatronJob::start(uint64_t number) {
  std::vector<WantedText> wanted;
  for (const RequestPrompt& prompt : request_.prompts) {
    Text result;
    std::vector<int32_t> ids;
    if (auto problem = encode_prompt(model_, request_, prompt, ids)) return problem;
    prompt_tokens_ += static_cast<int64_t>(ids.size());
    // The text of a T5 does not begin with the prompt.
    if (!model_.source) result = {.ids = ids, .text = prompt.text};
    wanted.push_back({.request = {.prompt = std::move(ids),
                                  .tokens = request_.tokens,
                                  .choice = request_.choice,
                                  .seed = request_.seed.value_or(random_number()),
                                  .end = request_.end.value_or(model_.end),
                                  .score_prompt = request_.logprobs},
                      .stops = request_.stops});
    if (model_.source) model_.source->apply(wanted.back().request);
    results_.push_back(std::move(result));
  }
  return texts_.submit(std::move(wanted), number);
}

void MegatronJob::on_update(const TextUpdate& update) {
  if (is_over_) return;
  const TokenEvent& event = *update.event;
  if (event.finish == FinishReason::Failed)
    return fail({.status = 500, .message = "the model failed to generate"});
  Text& result = results_[update.text];
  if (event.has_token && !has_first_) {
    has_first_ = true;
    metrics_.first_token(seconds_now() - began_);
  }
  for (const ScoredToken& token : event.prompt) result.logprobs.push_back(token.logprob);
  if (update.has_token) {
    result.ids.push_back(event.token.id);
    result.logprobs.push_back(event.token.logprob);
  }
  result.text += update.piece;
  if (texts_.is_done()) finish();
}

void MegatronJob::finish() {
  is_over_ = true;
  note();
  Json texts = Json::array(), segments = Json::array(), logprobs = Json::array();
  for (const Text& result : results_) {
    texts.push_back(result.text);
    segments.push_back(token_texts(*model_.tokenizer, result.ids));
    logprobs.push_back(result.logprobs);
  }
  answer_.send(
      {.content_type = "application/json",
       .body = json_text({{"text", std::move(texts)},
                          {"segments", std::move(segments)},
                          {"logprobs", request_.logprobs ? std::move(logprobs) : Json()}})});
}

void MegatronJob::fail(const ApiError& error) {
  is_over_ = true;
  note();
  answer_.send(megatron_response_of(error));
}

void MegatronJob::expire() {
  if (!is_over_)
    fail({.status = 504, .message = "the request took longer than this server allows"});
}

void MegatronJob::note() {
  answer_.record().note = format("tokens {}+{}", prompt_tokens_, texts_.generated());
}

HttpResponse megatron_response_of(const ApiError& error) {
  HttpResponse response = response_of(error);
  response.body = json_text({{"message", error.message}});
  return response;
}

BeamSearchJob::BeamSearchJob(const ServedModel& model, MegatronRequest request, HttpAnswer& answer,
                             PostCall post, WorkClock& clock)
    : TimedJob(clock),
      model_(model),
      request_(std::move(request)),
      answer_(answer),
      post_(std::move(post)),
      self_(std::make_shared<BeamSearchJob*>(this)) {}

BeamSearchJob::~BeamSearchJob() { *self_ = nullptr; }

std::optional<ApiError> BeamSearchJob::start(uint64_t number) {
  if (request_.tokens == 0)
    return ApiError{.message = "beam_width needs tokens_to_generate above 0",
                    .param = "tokens_to_generate"};
  if (auto problem = encode_prompt(model_, request_, request_.prompts.front(), prompt_.prompt))
    return problem;
  if (model_.source) model_.source->apply(prompt_);
  const BeamOptions options{.beams = request_.beams,
                            .tokens = request_.tokens,
                            .length_penalty = request_.length_penalty,
                            .end = request_.end.value_or(model_.end)};
  GenerationService::Answer answer = model_.service->search(
      prompt_.prompt, prompt_.source, options,
      [self = self_, post = post_](const std::vector<Beam>* beams) {
        std::optional<std::vector<Beam>> kept;
        if (beams != nullptr) kept = *beams;
        post([self, kept] {
          if (*self != nullptr) (*self)->answer_with(kept ? &*kept : nullptr);
        });
      },
      number);
  if (answer.ticket == nullptr) return error_of(answer, *model_.service);
  ticket_ = std::move(answer.ticket);
  return {};
}

void BeamSearchJob::answer_with(const std::vector<Beam>* beams) {
  if (is_over_) return;
  is_over_ = true;
  if (beams == nullptr) {
    answer_.send(megatron_response_of({.status = 500, .message = "the model failed to generate"}));
    return;
  }
  Json texts = Json::array(), segments = Json::array(), scores = Json::array();
  int64_t tokens = 0;
  for (const Beam& beam : *beams) {
    TextStreamer stream(*model_.tokenizer, {}, prompt_.prompt, prompt_.source.shown_specials());
    std::string text;
    std::vector<int32_t> ids;
    if (!model_.source) {
      text = request_.prompts.front().text;
      ids = prompt_.prompt;
    }
    for (const int32_t id : beam.ids) text += stream.add(id).text;
    texts.push_back(text + stream.finish());
    ids.insert(ids.end(), beam.ids.begin(), beam.ids.end());
    segments.push_back(token_texts(*model_.tokenizer, ids));
    scores.push_back(beam.score);
    tokens += std::ssize(beam.ids);
  }
  answer_.record().note = format("tokens {}+{}", prompt_.prompt_tokens(), tokens);
  answer_.send({.content_type = "application/json",
                .body = json_text({{"text", std::move(texts)},
                                   {"segments", std::move(segments)},
                                   {"scores", std::move(scores)}})});
}

void BeamSearchJob::expire() {
  if (is_over_) return;
  is_over_ = true;
  answer_.send(megatron_response_of(
      {.status = 504, .message = "the request took longer than this server allows"}));
}

}  // namespace bev

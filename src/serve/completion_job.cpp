#include "serve/completion_job.h"

#include <array>
#include <ctime>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "serve/generation_job.h"

namespace bev {

CompletionJob::CompletionJob(const ServedModel& model, CompletionRequest request,
                             HttpAnswer& answer, PostCall post, ServeMetrics& metrics,
                             WorkClock& clock)
    : TimedJob(clock),
      model_(model),
      request_(std::move(request)),
      answer_(answer),
      metrics_(metrics),
      id_("cmpl-" + random_name()),
      created_(std::time(nullptr)),
      began_(seconds_now()),
      texts_(*model.service, *model.tokenizer, std::move(post),
             [this](const TextUpdate& update) { on_update(update); }) {}

// Returns what is wrong with it.
std::string CompletionJob::encode(const RequestPrompt& prompt, std::vector<int32_t>& ids) const {
  if (model_.source) return encode_source(model_, prompt, ids);
  ids = prompt.ids;
  try {
    if (!prompt.is_ids) model_.tokenizer->encode_begun(prompt.text, ids);
  } catch (const Error& error) {
    return error.what();
  }
  // Nothing is the start of a document.
  if (ids.empty() && model_.end >= 0) ids.push_back(model_.end);
  if (ids.empty()) return "the prompt is empty, and this model has no token that begins a document";
  const auto tokens = static_cast<int64_t>(ids.size());
  if (tokens + request_.max_tokens > model_.limits.context)
    return format(
        "the prompt has {} tokens, with max_tokens {} that is more than the {} of this "
        "model",
        tokens, request_.max_tokens, model_.limits.context);
  return {};
}

std::optional<ApiError> CompletionJob::start(uint64_t number) {
  if (!request_.model.empty() && request_.model != model_.name)
    return ApiError{.status = 404,
                    .message = format("there is no model {}; this server has {}",
                                      in_quotes(request_.model), in_quotes(model_.name)),
                    .param = "model",
                    .code = "model_not_found"};
  if (request_.echo && model_.source)
    return ApiError{.message =
                        "echo: a prompt is no part of this model's text, its encoder reads "
                        "it; leave it out",
                    .param = "echo"};
  std::vector<WantedText> wanted;
  for (const RequestPrompt& prompt : request_.prompts) {
    std::vector<int32_t> ids;
    if (const std::string problem = encode(prompt, ids); !problem.empty())
      return ApiError{.message = problem, .param = "prompt", .code = "context_length_exceeded"};
    prompt_tokens_ += static_cast<int64_t>(ids.size());
    // A seed makes a text the same whatever stands beside it.
    const uint64_t seed = request_.seed.value_or(random_number());
    for (int64_t sample = 0; sample < request_.samples; ++sample) {
      WantedText& text =
          wanted.emplace_back(GenerationRequest{.prompt = ids,
                                                .tokens = request_.max_tokens,
                                                .choice = request_.choice,
                                                .seed = seed,
                                                .sample = sample,
                                                .end = model_.end,
                                                .alternatives = request_.logprobs.value_or(0),
                                                .score_prompt = request_.echo && request_.logprobs},
                              request_.stops);
      if (model_.source) model_.source->apply(text.request);
      Choice choice{.prompt = text.request.prompt};
      if (request_.echo) choice.echo = prompt.is_ids ? model_.tokenizer->decode(ids) : prompt.text;
      choices_.push_back(std::move(choice));
    }
  }
  return texts_.submit(std::move(wanted), number);
}

void CompletionJob::add_token(Choice& choice, const ScoredToken& token, bool is_scored,
                              const std::vector<ScoredToken>& alternatives) {
  const auto name = [&](int32_t id) { return token_text(*model_.tokenizer, choice.last, id); };
  TokenList& list = choice.list;
  const std::string text = name(token.id);
  list.tokens.push_back(text);
  list.offsets.push_back(choice.characters);
  list.logprobs.push_back(is_scored ? Json(token.logprob) : Json());
  if (*request_.logprobs > 0) {
    Json likeliest = Json::object();
    for (const ScoredToken& each : alternatives) likeliest.emplace(name(each.id), each.logprob);
    if (is_scored) likeliest.emplace(text, token.logprob);
    list.alternatives.push_back(is_scored ? std::move(likeliest) : Json());
  }
  choice.last = token.id;
}

// The prompt, where it is part of the answer.
void CompletionJob::begin_choice(Choice& choice, const TokenEvent& event) {
  choice.has_begun = true;
  if (!request_.echo) {
    choice.last = choice.prompt.back();
    return;
  }
  if (request_.logprobs) {
    const auto add = [&](const ScoredToken& token, bool is_scored) {
      add_token(choice, token, is_scored, {});
      choice.characters += count_characters(choice.list.tokens.back().get<std::string>());
    };
    add({.id = choice.prompt.front()}, false);
    for (const ScoredToken& token : event.prompt) add(token, true);
  }
  choice.characters = count_characters(choice.echo);
  choice.text = std::move(choice.echo);
}

void CompletionJob::on_update(const TextUpdate& update) {
  if (is_over_) return;
  Choice& choice = choices_[update.text];
  if (update.event->finish == FinishReason::Failed)
    return fail({.status = 500,
                 .message = model_.service->failure().empty()
                                ? "the model gave no finite probability to any token"
                                : "the model has failed"});
  if (update.event->has_token && !has_first_) {
    has_first_ = true;
    metrics_.first_token(seconds_now() - began_);
  }
  if (!choice.has_begun) begin_choice(choice, *update.event);
  if (update.has_token && request_.logprobs)
    add_token(choice, update.event->token, true, update.event->alternatives);
  choice.characters += count_characters(update.piece);
  choice.text += update.piece;
  if (update.is_end) {
    choice.reason = update.reason;
    if (update.is_cut) cut_list(choice);
  }
  if (request_.streams) send_piece(update.text);
  if (texts_.is_done()) finish();
}

// A stop string is no part of the text, nor are its tokens.
void CompletionJob::cut_list(Choice& choice) const {
  TokenList& list = choice.list;
  while (!list.offsets.empty() && list.offsets.back().get<int64_t>() >= choice.characters) {
    for (Json* column : {&list.tokens, &list.logprobs, &list.alternatives, &list.offsets})
      if (!column->empty()) column->erase(column->size() - 1);
  }
}

// Takes what was not sent yet.
Json CompletionJob::choice_json(size_t number) {
  Choice& choice = choices_[number];
  Json logprobs;
  if (request_.logprobs)
    logprobs = {
        {"tokens", std::move(choice.list.tokens)},
        {"token_logprobs", std::move(choice.list.logprobs)},
        {"top_logprobs", *request_.logprobs > 0 ? std::move(choice.list.alternatives) : Json()},
        {"text_offset", std::move(choice.list.offsets)}};
  Json json{{"index", number},
            {"text", std::move(choice.text)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", choice.reason.empty() ? Json() : Json(choice.reason)}};
  choice.list = {};
  choice.text.clear();
  return json;
}

Json CompletionJob::frame(Json choices) const {
  return {{"id", id_},
          {"object", "text_completion"},
          {"created", created_},
          {"model", model_.name},
          {"choices", std::move(choices)}};
}

Json CompletionJob::usage() const {
  return {{"prompt_tokens", prompt_tokens_},
          {"completion_tokens", texts_.generated()},
          {"total_tokens", prompt_tokens_ + texts_.generated()}};
}

void CompletionJob::send_piece(size_t number) {
  if (!is_streaming_) {
    is_streaming_ = true;
    answer_.begin({.status = 200,
                   .content_type = "text/event-stream",
                   .headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}});
  }
  const Choice& choice = choices_[number];
  // Tokens wait for their text.
  if (choice.text.empty() && choice.reason.empty()) return;
  Json json = frame(Json::array({choice_json(number)}));
  if (request_.includes_usage) json["usage"] = nullptr;
  answer_.write(format("data: {}\n\n", json_text(json)));
}

void CompletionJob::finish() {
  is_over_ = true;
  note();
  if (!request_.streams) {
    Json choices = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i));
    Json json = frame(std::move(choices));
    json["usage"] = usage();
    answer_.send({.content_type = "application/json", .body = json_text(json)});
    return;
  }
  if (request_.includes_usage) {
    Json json = frame(Json::array());
    json["usage"] = usage();
    answer_.write(format("data: {}\n\n", json_text(json)));
  }
  answer_.write("data: [DONE]\n\n");
  answer_.end();
}

void CompletionJob::fail(const ApiError& error) {
  is_over_ = true;
  note();
  if (!is_streaming_) {
    answer_.send(response_of(error));
    return;
  }
  answer_.write(format("data: {}\n\n", json_of(error)));
  answer_.end();
}

void CompletionJob::expire() {
  if (!is_over_)
    fail({.status = 504, .message = "the request took longer than this server allows"});
}

void CompletionJob::note() {
  answer_.record().note = format("tokens {}+{}", prompt_tokens_, texts_.generated());
}

}  // namespace bev

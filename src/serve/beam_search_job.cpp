#include "serve/beam_search_job.h"

#include "base/format.h"
#include "serve/json_text.h"
#include "serve/megatron_job.h"
#include "serve/token_text.h"

namespace bev {

BeamWork::BeamWork(const ServedModel& model, MegatronRequest request, HttpAnswer& answer,
                   PostCall post, WorkClock& clock)
    : TimedWork(clock),
      model_(model),
      request_(std::move(request)),
      answer_(answer),
      post_(std::move(post)),
      self_(std::make_shared<BeamWork*>(this)) {}

BeamWork::~BeamWork() { *self_ = nullptr; }

std::optional<ApiError> BeamWork::start(uint64_t number) {
  if (request_.tokens == 0)
    return ApiError{.message = "beam_width needs tokens_to_generate above 0",
                    .param = "tokens_to_generate"};
  if (auto problem = encode_prompt(model_, request_, request_.prompts.front(), prompt_))
    return problem;
  const BeamOptions options{.beams = request_.beams,
                            .tokens = request_.tokens,
                            .length_penalty = request_.length_penalty,
                            .end = request_.end.value_or(model_.end)};
  GenerationService::Answer answer = model_.service->search(
      prompt_, options,
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

void BeamWork::answer_with(const std::vector<Beam>* beams) {
  if (is_over_) return;
  is_over_ = true;
  if (beams == nullptr) {
    answer_.send(megatron_response_of({.status = 500, .message = "the model failed to generate"}));
    return;
  }
  Json texts = Json::array(), segments = Json::array(), scores = Json::array();
  int64_t tokens = 0;
  for (const Beam& beam : *beams) {
    TextStream stream(*model_.tokenizer, {}, prompt_);
    std::string text = request_.prompts.front().text;
    for (const int32_t id : beam.ids) text += stream.add(id).text;
    texts.push_back(text + stream.finish());
    std::vector<int32_t> ids = prompt_;
    ids.insert(ids.end(), beam.ids.begin(), beam.ids.end());
    segments.push_back(token_texts(*model_.tokenizer, ids));
    scores.push_back(beam.score);
    tokens += std::ssize(beam.ids);
  }
  answer_.record().note = format("tokens {}+{}", prompt_.size(), tokens);
  answer_.send({.content_type = "application/json",
                .body = json_text({{"text", std::move(texts)},
                                   {"segments", std::move(segments)},
                                   {"scores", std::move(scores)}})});
}

void BeamWork::expire() {
  if (is_over_) return;
  is_over_ = true;
  answer_.send(megatron_response_of(
      {.status = 504, .message = "the request took longer than this server allows"}));
}

}  // namespace bev

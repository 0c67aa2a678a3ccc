#include "serve/encoder_job.h"

#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"

namespace bev {

namespace {

constexpr size_t kLongestModelName = 256;
constexpr int64_t kMostCandidates = 1000;

}  // namespace

std::variant<EncoderTexts, ApiError> read_embedding_request(std::string_view body,
                                                            const RequestLimits& limits) {
  const ParsedBody parsed = parse_body(body);
  if (parsed.problem) return *parsed.problem;
  RequestFields fields(parsed.json);
  EncoderTexts request;
  request.model = fields.text("model", "", kLongestModelName);
  request.texts = read_prompts(fields, "input", limits);
  const std::string pooling = fields.text("pooling", "mean", 16);
  if (pooling != "mean" && pooling != "cls")
    fields.refuse("pooling", "pooling must be \"mean\" or \"cls\"");
  request.pooling = pooling == "cls" ? Pooling::Cls : Pooling::Mean;
  const std::string encoding = fields.text("encoding_format", "float", 16);
  if (encoding != "float" && encoding != "base64")
    fields.refuse("encoding_format", "encoding_format must be \"float\" or \"base64\"");
  request.is_base64 = encoding == "base64";
  if (fields.find("dimensions") != nullptr)
    fields.refuse("dimensions", "embeddings have the width of the model; leave dimensions out");
  fields.text("user", "", 4096);
  if (const std::optional<ApiError> problem = fields.finish()) return *problem;
  return request;
}

std::variant<EncoderTexts, ApiError> read_fill_mask_request(std::string_view body,
                                                            const RequestLimits& limits) {
  const ParsedBody parsed = parse_body(body);
  if (parsed.problem) return *parsed.problem;
  RequestFields fields(parsed.json);
  EncoderTexts request;
  request.model = fields.text("model", "", kLongestModelName);
  request.texts = read_prompts(fields, "input", limits);
  request.top = fields.integer("top_k", 5, 1, std::min(kMostCandidates, limits.vocab));
  fields.text("user", "", 4096);
  if (const std::optional<ApiError> problem = fields.finish()) return *problem;
  return request;
}

EncoderJob::EncoderJob(const ServedModel& model, EncoderTexts request, HttpAnswer& answer,
                       PostCall post, WorkClock& clock)
    : TimedJob(clock),
      model_(model),
      request_(std::move(request)),
      answer_(answer),
      post_(std::move(post)),
      self_(std::make_shared<EncoderJob*>(this)) {}

EncoderJob::~EncoderJob() { *self_ = nullptr; }

std::optional<ApiError> EncoderJob::encode(EncoderRequest& wanted) {
  BertText& bert = *model_.bert;
  int64_t masks = 0;
  for (size_t i = 0; i < request_.texts.size(); ++i) {
    const RequestPrompt& text = request_.texts[i];
    EncoderInput input;
    try {
      // The client puts [CLS] and [SEP] around ids.
      input = text.is_ids ? EncoderInput{.ids = text.ids}
                          : EncoderInput{.ids = bert.wrapped(bert.tokens(text.text))};
    } catch (const Error& error) {
      return ApiError{.message = error.what(), .param = "input"};
    }
    if (std::ssize(input.ids) > model_.limits.context)
      return ApiError{.message = format("text {} has {} tokens; this model takes {} at most", i,
                                        input.ids.size(), model_.limits.context),
                      .param = "input",
                      .code = "context_length_exceeded"};
    for (size_t at = 0; !wanted.pooling && at < input.ids.size(); ++at)
      if (input.ids[at] == bert.mask()) input.marked.push_back(static_cast<int32_t>(at));
    if (!wanted.pooling && input.marked.empty())
      return ApiError{.message = format("text {} has no {}: there is nothing to fill", i,
                                        bert.token_name(bert.mask())),
                      .param = "input"};
    masks += std::ssize(input.marked);
    tokens_ += std::ssize(input.ids);
    wanted.inputs.push_back(std::move(input));
  }
  if (masks * request_.top > model_.limits.candidates)
    return ApiError{
        .message = format("{} masks with top_k {} have {} candidates; a request may "
                          "have {} at most: send fewer masks or lower top_k",
                          masks, request_.top, masks * request_.top, model_.limits.candidates),
        .param = "top_k"};
  return {};
}

std::optional<ApiError> EncoderJob::start() {
  if (!request_.model.empty() && request_.model != model_.name)
    return ApiError{.status = 404,
                    .message = format("there is no model {}; this server has {}",
                                      in_quotes(request_.model), in_quotes(model_.name)),
                    .param = "model",
                    .code = "model_not_found"};
  EncoderRequest wanted{.pooling = request_.pooling, .top = request_.top};
  if (auto problem = encode(wanted)) return problem;
  EncoderService::Answer answer = model_.encoder->submit(
      std::move(wanted), [self = self_, post = post_](const EncoderResult* result) {
        const auto kept = result == nullptr ? nullptr : std::make_shared<EncoderResult>(*result);
        post([self, kept] {
          if (*self != nullptr) (*self)->answer_with(kept.get());
        });
      });
  if (answer.ticket == nullptr) {
    if (!model_.encoder->failure().empty())
      return ApiError{.status = 503, .message = answer.refusal, .code = "service_failed"};
    return ApiError{.status = 429, .message = answer.refusal, .code = "queue_full"};
  }
  ticket_ = std::move(answer.ticket);
  return {};
}

Json EncoderJob::embedding_json(const std::vector<float>& embedding, size_t index) const {
  Json json{{"object", "embedding"}, {"index", index}};
  if (request_.is_base64) {
    json["embedding"] =
        base64({reinterpret_cast<const char*>(embedding.data()), embedding.size() * sizeof(float)});
  } else {
    json["embedding"] = embedding;
  }
  return json;
}

Json EncoderJob::filled_json(const FilledText& filled, size_t index) const {
  Json masks = Json::array();
  for (const FilledMask& mask : filled) {
    Json candidates = Json::array();
    for (const MaskCandidate& each : mask.candidates)
      candidates.push_back({{"token", model_.bert->token_name(each.id)},
                            {"id", each.id},
                            {"probability", each.probability}});
    masks.push_back({{"position", mask.position}, {"candidates", std::move(candidates)}});
  }
  return {{"object", "filled_text"}, {"index", index}, {"masks", std::move(masks)}};
}

void EncoderJob::answer_with(const EncoderResult* result) {
  if (is_over_) return;
  is_over_ = true;
  answer_.record().note = format("tokens {}", tokens_);
  if (result == nullptr) {
    answer_.send(response_of({.status = 500, .message = "the model has failed"}));
    return;
  }
  Json data = Json::array();
  for (size_t i = 0; i < result->embeddings.size(); ++i)
    data.push_back(embedding_json(result->embeddings[i], i));
  for (size_t i = 0; i < result->filled.size(); ++i)
    data.push_back(filled_json(result->filled[i], i));
  answer_.send(
      {.content_type = "application/json",
       .body = json_text({{"object", "list"},
                          {"data", std::move(data)},
                          {"model", model_.name},
                          {"usage", {{"prompt_tokens", tokens_}, {"total_tokens", tokens_}}}})});
}

void EncoderJob::expire() {
  if (is_over_) return;
  is_over_ = true;
  answer_.send(
      response_of({.status = 504, .message = "the request took longer than this server allows"}));
}

}  // namespace bev

// The answers of /v1/embeddings (OpenAI's) and /v1/fill-mask, by a BERT.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "infer/encoder_service.h"
#include "serve/generation_job.h"
#include "serve/request_fields.h"

namespace bev {

struct EncoderTexts {
  std::string model{};  // empty: whichever there is
  std::vector<RequestPrompt> texts{};
  std::optional<Pooling> pooling{};  // absent: masks are filled
  int64_t top = 5;
  bool is_base64 = false;  // embeddings as base64 of little-endian float32
};

std::variant<EncoderTexts, ApiError> read_embedding_request(std::string_view body,
                                                            const RequestLimits& limits);
std::variant<EncoderTexts, ApiError> read_fill_mask_request(std::string_view body,
                                                            const RequestLimits& limits);

class EncoderJob final : public TimedJob {
 public:
  EncoderJob(const ServedModel& model, EncoderTexts request, HttpAnswer& answer, PostCall post,
             WorkClock& clock);
  ~EncoderJob() override;

  // The error of the request; none: the answer follows.
  std::optional<ApiError> start();

  void expire() override;

 private:
  std::optional<ApiError> encode(EncoderRequest& wanted);
  void answer_with(const EncoderResult* result);
  Json embedding_json(const std::vector<float>& embedding, size_t index) const;
  Json filled_json(const FilledText& filled, size_t index) const;

  const ServedModel& model_;
  EncoderTexts request_;
  HttpAnswer& answer_;
  PostCall post_;
  int64_t tokens_ = 0;
  std::shared_ptr<EncoderJob*> self_;  // null when it is gone; of the server's thread
  std::unique_ptr<EncoderService::Ticket> ticket_;
  bool is_over_ = false;
};

}  // namespace bev

// Embeddings and filled masks for clients that come from many threads, by one thread that owns the
// model (a BERT).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "infer/embedding/text_embedding.h"
#include "infer/encoder_pass.h"
#include "infer/generation_service.h"
#include "infer/mask_filler.h"

namespace bev {

struct EncoderRequest {
  std::vector<EncoderInput> inputs{};
  std::optional<Pooling> pooling{};  // embeddings; absent: filled masks
  int64_t top = 5;                   // words of each mask
};

// One of the two is filled, an entry for each input.
struct EncoderResult {
  std::vector<std::vector<float>> embeddings{};
  std::vector<FilledText> filled{};
};

// Requests are answered in their order, each in separate batches. When the model throws,
// all open requests fail and no more are taken.
class EncoderService final : public ModelService {
 public:
  // Takes requests while fewer than `waiting` sequences wait. The model must outlive this, which
  // alone uses it until then.
  EncoderService(LoadedModel& model, int64_t waiting);
  ~EncoderService() override;
  EncoderService(const EncoderService&) = delete;
  EncoderService& operator=(const EncoderService&) = delete;

  // Called once from the thread of the service; null: the model failed. Must not block.
  using Sink = std::function<void(const EncoderResult* result)>;
  // A request that waits or runs. Once the destructor has returned, the sink is not called any
  // more. REQUIRES: not destroyed by the sink itself, nor after the service.
  class Ticket;
  struct Answer {
    std::unique_ptr<Ticket> ticket{};  // absent if the request is refused
    std::string refusal{};             // why, in a sentence
    bool is_full = false;              // too many sequences wait; try later
  };
  // Thread-safe. REQUIRES: at least one input, inputs that fit the model.
  Answer submit(EncoderRequest request, Sink sink);

  ServiceCounts counts() const override;
  std::string failure() const override;
  // The exception of the model; null: none.
  std::exception_ptr error() const;

 private:
  struct Request;
  using Shared = std::shared_ptr<Request>;

  void run();
  void compute(Request& request);
  void fail(const std::exception_ptr& error, const std::string& why);
  void cancel(const Shared& request);

  EncoderPass pass_;
  const int64_t most_waiting_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Shared> queue_;  // the first one is computed
  ServiceCounts counts_;
  bool is_stopping_ = false;
  std::string failure_;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

class EncoderService::Ticket {
 public:
  Ticket(EncoderService& service, Shared request)
      : service_(service), request_(std::move(request)) {}
  ~Ticket() { service_.cancel(request_); }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

 private:
  EncoderService& service_;
  Shared request_;
};

}  // namespace bev

// Generation for clients that come from many threads, by one thread that owns the model.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "infer/beam_search.h"
#include "infer/generation_request.h"

namespace bev {

// What has happened so far, for monitoring.
struct ServiceCounts {
  int64_t waiting = 0, running = 0;                  // requests now
  int64_t finished = 0, cancelled = 0, refused = 0;  // requests ever
  int64_t prompt_tokens = 0, generated_tokens = 0;   // ever
  int64_t steps = 0;                                 // of the model, ever
  double busy_seconds = 0;                           // ever
  int64_t free_pages = 0, pages = 0;                 // of the cache
};

class GenerationService {
 public:
  virtual ~GenerationService() = default;

  // A request that waits or runs. Destroying it cancels: the sink is not called any more once the
  // destructor has returned. REQUIRES: not destroyed by the sink itself.
  class Ticket {
   public:
    virtual ~Ticket() = default;
  };
  struct Answer {
    std::unique_ptr<Ticket> ticket{};  // absent where it is refused
    std::string refusal{};             // why, in a sentence
    bool is_full = false;              // refused because too many wait: later is another matter
  };
  // Thread-safe. The sink is called from the thread of the service and must not block. Requests of
  // one group (the texts that one client wants at once) take turns with those of other groups: many
  // in one do not keep the others waiting.
  virtual Answer submit(GenerationRequest request, TokenSink sink, uint64_t group) = 0;

  // The same for a search among several continuations of one prompt, during which nothing else is
  // generated. The sink is called once, with the texts, best first; null: the model failed.
  using BeamSink = std::function<void(const std::vector<Beam>* beams)>;
  virtual Answer search(std::vector<int32_t> prompt, const BeamOptions& options, BeamSink sink,
                        uint64_t group) = 0;

  virtual ServiceCounts counts() const = 0;
  // Empty, or why nothing is generated any more.
  virtual std::string failure() const = 0;
  // Nothing new is taken; returns when all that runs and waits has ended, or after `seconds`. True:
  // all has ended.
  virtual bool drain(double seconds) = 0;
};

}  // namespace bev

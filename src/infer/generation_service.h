// Generation for clients that come from many threads, by one thread that owns the model.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "infer/beam_search.h"
#include "infer/continuous_batcher.h"
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

// A model served by a dedicated thread, for monitoring. Thread-safe.
class ModelService {
 public:
  virtual ~ModelService() = default;

  virtual ServiceCounts counts() const = 0;
  // Empty, or why nothing is computed any more.
  virtual std::string failure() const = 0;
};

class GenerationService : public ModelService {
 public:
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
  virtual Answer search(std::vector<int32_t> prompt, SourceText source, const BeamOptions& options,
                        BeamSink sink, uint64_t group) = 0;

  // Nothing new is taken; returns when all that runs and waits has ended, or after `seconds`. True:
  // all has ended.
  virtual bool drain(double seconds) = 0;
};

// A GenerationService over a batcher, by a thread of its own.

struct QueueOptions {
  int64_t rows = 1;     // texts that are given to the batcher at a time
  int64_t waiting = 1;  // texts besides those
  // Does searches, while the batcher is idle, as beam_search(). May be empty.
  using Search =
      std::function<std::vector<Beam>(std::span<const int32_t> prompt, const SourceText& source,
                                      const BeamOptions& options, FunctionRef<bool()> goes_on)>;
  Search search{};
  // While there is nothing to do, called so often by the thread that owns the model. May be empty.
  std::function<void()> when_idle{};
  std::chrono::milliseconds idle_interval{1000};
};

// Groups take turns: whose turn it is gives one of its texts to the batcher and goes to the end of
// the line. When the model throws, all open requests end with Finish::Failed and nothing is taken
// any more. Tickets must not outlive this.
class QueuedService final : public GenerationService {
 public:
  // The batcher must outlive this, which alone uses it until then.
  QueuedService(ContinuousBatcher& batcher, QueueOptions options);
  // Cancels what is open.
  ~QueuedService() override;

  Answer submit(GenerationRequest request, TokenSink sink, uint64_t group) override;
  // Waits until those in front of it have ended; those behind it wait for it.
  Answer search(std::vector<int32_t> prompt, SourceText source, const BeamOptions& options,
                BeamSink sink, uint64_t group) override;
  ServiceCounts counts() const override;
  std::string failure() const override;
  bool drain(double seconds) override;

  // What the model threw; null: nothing.
  std::exception_ptr error() const;

 private:
  struct Request;
  using Shared = std::shared_ptr<Request>;
  class OwnTicket;

  void run();
  void work();
  // Returns when there is something to do.
  void wait(std::unique_lock<std::mutex>& lock);
  void cancel(const Shared& request);
  // The next one whose turn it is; null: none waits.
  Shared take_turn();
  void admit();
  Answer take(const std::shared_ptr<Request>& request, std::string refusal, uint64_t group);
  std::string why_not_search(GenerationRequest like, const BeamOptions& options) const;
  void run_search(std::unique_lock<std::mutex>& lock);
  // Whether somebody still wants the result of a search that has made one more token.
  bool search_goes_on(Request& request);
  void settle(double busy_seconds);
  bool has_settled() const { return waiting_ == 0 && admitted_.empty() && search_ == nullptr; }
  void fail(const std::exception_ptr& error, const std::string& why);
  void deliver(Request& request, const TokenEvent& event);

  ContinuousBatcher& batcher_;
  const QueueOptions options_;
  const int64_t all_pages_;

  // Of the thread of the model alone.
  std::vector<int64_t> ended_;  // numbers, in this step
  int64_t made_ = 0;            // tokens, in this step

  mutable std::mutex mutex_;
  std::condition_variable wake_, settled_;
  std::map<uint64_t, std::deque<Shared>> groups_;  // that have texts which wait
  std::deque<uint64_t> turns_;                     // the same, whose turn is next first
  std::unordered_map<int64_t, Shared> admitted_;   // by the batcher's number
  std::vector<int64_t> cancelled_;                 // numbers, to be told to the batcher
  Shared search_;                                  // a beam search whose turn it is
  int64_t waiting_ = 0;
  bool is_stopping_ = false, is_draining_ = false, is_idle_ = true;
  ServiceCounts counts_;
  std::string failure_;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace bev

// The calls of an inference engine, which the first rank broadcasts to the others.
#pragma once

#include <string>

#include "infer/inference_engine.h"

namespace bev {

struct EngineCall {
  enum class Kind : uint8_t {
    Nothing,
    Prefill,
    Score,
    Decode,
    DecodeFurther,
    Logits,
    CopyPage,
    End
  };
  // An EngineRow that owns its tokens and pages.
  struct Row {
    std::vector<int32_t> tokens{}, pages{};
    SamplingOptions choice{};
    int64_t key = 0;
    std::vector<int32_t> source{};
    int64_t source_length = 0;
    std::vector<int32_t> source_pages{};
    EngineRow row() const {
      return {tokens, pages, choice, key, source, source_length, source_pages};
    }
  };

  Kind kind = Kind::Nothing;
  int32_t collected = 0;     // steps that are to be collected before it
  int32_t from = 0, to = 0;  // of CopyPage
  std::vector<Row> rows{};
};

class EngineCalls {
 public:
  // All ranks of the world make one at the same time, with the limits of their engines. The world
  // must outlive this.
  EngineCalls(Communicator& world, Device& device, const EngineLimits& limits);

  // The first rank sends, the others receive. One broadcast if the call is no longer than a step of
  // all rows, else two.
  void send(EngineCall::Kind kind, std::span<const EngineRow> rows = {}, int32_t from = 0,
            int32_t to = 0);
  // The first rank has collected a step. The others do it before the next call: nobody waits for
  // them.
  void note_collected() { ++collected_; }
  EngineCall receive();

 private:
  // The message of the first rank, on all.
  void share(std::string& message);
  void broadcast(Buffer& buffer, std::span<std::byte> bytes, size_t sent);

  Communicator& world_;
  Device& device_;
  Buffer first_;  // of a message
  Buffer rest_;   // grows
  int32_t collected_ = 0;
};

}  // namespace bev

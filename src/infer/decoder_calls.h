// The calls of a decoder, told by one rank to all others.
#pragma once

#include "infer/decoder.h"

namespace bev {

struct DecoderCall {
  enum class Kind : uint8_t {
    Nothing,
    Prefill,
    Score,
    Decode,
    DecodeFurther,
    Collect,
    Logits,
    CopyPage,
    End
  };
  // A DecoderRow that owns what it names.
  struct Row {
    std::vector<int32_t> tokens{}, pages{};
    ChoiceOptions choice{};
    int64_t key = 0;
    DecoderRow row() const { return {tokens, pages, choice, key}; }
  };

  Kind kind = Kind::Nothing;
  std::vector<Row> rows{};
  int32_t from = 0, to = 0;  // of CopyPage
};

class DecoderCalls {
 public:
  // All ranks of the world make one at the same time; the world must outlive this.
  DecoderCalls(Communicator& world, Device& device);

  // The first rank says it, the others hear it.
  void tell(DecoderCall::Kind kind, std::span<const DecoderRow> rows = {}, int32_t from = 0,
            int32_t to = 0);
  DecoderCall hear();

 private:
  // The bytes of the first rank, on all.
  void share(std::vector<std::byte>& bytes);

  Communicator& world_;
  Device& device_;
  Buffer buffer_;  // grows
  Buffer size_;
};

}  // namespace bev

// Numbers as text: ids separated by blanks.
#pragma once

#include "text/tokenizer.h"

namespace bev {

class NullTokenizer final : public Tokenizer {
 public:
  // REQUIRES: 0 <= eod < vocab.
  NullTokenizer(int64_t vocab, int32_t eod) : vocab_(vocab), eod_(eod) {}

  std::unique_ptr<Tokenizer> clone() const override {
    return std::make_unique<NullTokenizer>(vocab_, eod_);
  }
  void encode(std::string_view text, std::vector<int32_t>& ids) override;
  std::string decode(std::span<const int32_t> ids,
                     SpecialIds special = SpecialIds::Keep) const override;
  std::string token_name(int32_t id) const override { return std::to_string(id); }
  int64_t vocab_size() const override { return vocab_; }
  std::optional<int32_t> eod_id() const override { return eod_; }

 private:
  int64_t vocab_;
  int32_t eod_;
};

}  // namespace bev

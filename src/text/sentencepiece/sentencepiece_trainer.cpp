#include "text/sentencepiece/sentencepiece_trainer.h"

#include <sentencepiece_trainer.h>

#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/utf8.h"

namespace bev {

namespace {

using LibraryStatus = decltype(std::declval<const sentencepiece::SentenceIterator&>().status());

// The lines of texts, without their newlines. Bytes that are no UTF-8 are replaced.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string_view> texts) : texts_(texts) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  LibraryStatus status() const override { return {}; }

  void Next() override {
    do {
      while (rest_.empty() && !texts_.empty()) {
        rest_ = texts_.front();
        texts_ = texts_.subspan(1);
      }
      done_ = rest_.empty();
      if (done_) return;
      const size_t newline = rest_.find('\n');
      const std::string_view line = rest_.substr(0, newline);
      rest_.remove_prefix(newline == std::string_view::npos ? rest_.size() : newline + 1);
      if (line.size() > TrainedSentencePiece::kLongestLine) {
        ++long_lines_;
        line_.clear();
      } else {
        line_ = replace_invalid_utf8(line);
      }
    } while (line_.empty());
  }

  int64_t long_lines() const { return long_lines_; }

 private:
  std::span<const std::string_view> texts_;  // behind the current one
  std::string_view rest_;                    // of the current one
  std::string line_;
  bool done_ = false;
  int64_t long_lines_ = 0;
};

std::unordered_map<std::string, std::string> arguments(const SentencePieceTraining& how) {
  std::string specials;
  for (const std::string& special : how.specials) {
    BEV_CHECK(!special.empty() && special.find(',') == std::string::npos &&
                  valid_utf8_prefix(special) == special.size(),
              Usage, "the special token {} cannot be a piece; legal: text without commas",
              in_quotes(special));
    specials += (specials.empty() ? "" : ",") + special;
  }
  std::unordered_map<std::string, std::string> all{
      {"vocab_size", std::to_string(how.vocab)},
      {"num_threads", std::to_string(how.threads)},
      {"max_sentence_length", std::to_string(TrainedSentencePiece::kLongestLine)},
      {"character_coverage", "0.99995"},
      {"minloglevel", "3"}};
  if (!specials.empty()) all["user_defined_symbols"] = specials;
  if (how.style == SentencePieceStyle::Bpe) {
    all.insert({{"model_type", "bpe"},
                {"byte_fallback", "true"},
                {"split_digits", "true"},
                {"remove_extra_whitespaces", "false"},
                {"allow_whitespace_only_pieces", "true"},
                {"normalization_rule_name", "identity"},
                {"unk_id", "0"},
                {"bos_id", "1"},
                {"eos_id", "2"},
                {"pad_id", "-1"}});
  } else {
    all.insert({{"model_type", "unigram"},
                {"normalization_rule_name", "nmt_nfkc"},
                {"pad_id", "0"},
                {"eos_id", "1"},
                {"unk_id", "2"},
                {"bos_id", "-1"}});
  }
  return all;
}

// Behind the line of its source and the condition, which help nobody here.
std::string reason_of(const LibraryStatus& status) {
  const std::string message = status.message();
  const size_t bracket = message.rfind("] ");
  return bracket == std::string::npos || bracket + 2 == message.size()
             ? message
             : message.substr(bracket + 2);
}

}  // namespace

TrainedSentencePiece train_sentencepiece(std::span<const std::string_view> texts,
                                         const SentencePieceTraining& how) {
  Lines lines(texts);
  TrainedSentencePiece trained;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments(how), &lines, &trained.model);
  BEV_CHECK(status.ok(), Usage, "the SentencePiece library cannot train this: {}",
            reason_of(status));
  trained.long_lines = lines.long_lines();
  return trained;
}

std::string sentencepiece_vocab(std::string_view model) {
  std::string text;
  for (const SentencePieceFacts::Piece& piece : read_sentencepiece_facts(model, "model").pieces)
    text += format("{}\t{}\n", piece.text, piece.score);
  return text;
}

}  // namespace bev

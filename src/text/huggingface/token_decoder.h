// One step on the way from the names of tokens to text: it changes a list of strings, which are
// joined when all steps are done. It never changes and may be shared.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bev {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// The bytes that the names stand for (bpe_vocab.h), all in one; a name that stands for none is
// itself.
std::unique_ptr<TokenDecoder> byte_level_decoder();

// <0x41> becomes its byte; bytes in a row that are no UTF-8 become one U+FFFD each.
std::unique_ptr<TokenDecoder> byte_fallback_decoder();

// A blank between words; with clean_up no blank before punctuation and parts of words.
std::unique_ptr<TokenDecoder> wordpiece_decoder(std::string prefix, bool clean_up);

// The replacement becomes a blank, in the first token nothing where `drop_first`.
std::unique_ptr<TokenDecoder> metaspace_decoder(char32_t replacement, bool drop_first);

// REQUIRES: from is not empty.
std::unique_ptr<TokenDecoder> replace_decoder(std::string from, std::string to);

// All tokens in one.
std::unique_ptr<TokenDecoder> fuse_decoder();

// At most so many of the character go from the ends of each token.
std::unique_ptr<TokenDecoder> strip_decoder(char32_t character, size_t left, size_t right);

// A blank between all tokens: what is done without any decoder.
std::unique_ptr<TokenDecoder> blanks_decoder();

}  // namespace bev

#include "text/huggingface/token_decoder.h"

#include <array>
#include <optional>
#include <string_view>

#include "text/bpe/bpe_vocab.h"
#include "text/utf8.h"

namespace bev {

namespace {

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string text;
    for (const std::string& token : tokens) text += bytes_of_name(token).value_or(token);
    tokens.assign(1, std::move(text));
  }
};

class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (valid_utf8_prefix(bytes) == bytes.size()) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<char> byte = byte_of(token)) {
        bytes += *byte;
      } else {
        flush();
        result.push_back(std::move(token));
      }
    }
    flush();
    tokens = std::move(result);
  }

 private:
  static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  }

  static std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>'))
      return std::nullopt;
    // The library's numbers may have a sign.
    const int high = token[3] == '+' ? 0 : digit_of(token[3]), low = digit_of(token[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(high * 16 + low);
  }
};

class WordPieceDecoder final : public TokenDecoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean_up)
      : prefix_(std::move(prefix)), clean_up_(clean_up) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i > 0 && token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i > 0) {
        token.insert(0, " ");
      }
      if (clean_up_) clean(token);
    }
  }

 private:
  // Each token by itself, so what spans two of them stays.
  static void clean(std::string& token) {
    static constexpr std::array<std::array<std::string_view, 2>, 11> kChanges = {
        {{" .", "."},
         {" ?", "?"},
         {" !", "!"},
         {" ,", ","},
         {" ' ", "'"},
         {" n't", "n't"},
         {" 'm", "'m"},
         {" do not", " don't"},
         {" 's", "'s"},
         {" 've", "'ve"},
         {" 're", "'re"}}};
    for (const auto& [from, to] : kChanges) replace_all(token, from, to);
  }

  std::string prefix_;
  bool clean_up_;
};

class MetaspaceDecoder final : public TokenDecoder {
 public:
  MetaspaceDecoder(char32_t replacement, bool drop_first) : drop_first_(drop_first) {
    append_utf8(replacement, replacement_);
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && drop_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drop_first_;
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  ReplaceDecoder(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) replace_all(token, from_, to_);
  }

 private:
  std::string from_, to_;
};

class FuseDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens.assign(1, joined(tokens)); }
};

class StripDecoder final : public TokenDecoder {
 public:
  StripDecoder(char32_t character, size_t left, size_t right) : left_(left), right_(right) {
    append_utf8(character, character_);
  }

  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (size_t i = 0; i < left_ && token.starts_with(character_); ++i)
        token.erase(0, character_.size());
      for (size_t i = 0; i < right_ && token.ends_with(character_); ++i)
        token.resize(token.size() - character_.size());
    }
  }

 private:
  std::string character_;
  size_t left_, right_;
};

class BlanksDecoder final : public TokenDecoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
  }
};

}  // namespace

std::unique_ptr<TokenDecoder> byte_level_decoder() { return std::make_unique<ByteLevelDecoder>(); }

std::unique_ptr<TokenDecoder> byte_fallback_decoder() {
  return std::make_unique<ByteFallbackDecoder>();
}

std::unique_ptr<TokenDecoder> wordpiece_decoder(std::string prefix, bool clean_up) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), clean_up);
}

std::unique_ptr<TokenDecoder> metaspace_decoder(char32_t replacement, bool drop_first) {
  return std::make_unique<MetaspaceDecoder>(replacement, drop_first);
}

std::unique_ptr<TokenDecoder> replace_decoder(std::string from, std::string to) {
  return std::make_unique<ReplaceDecoder>(std::move(from), std::move(to));
}

std::unique_ptr<TokenDecoder> fuse_decoder() { return std::make_unique<FuseDecoder>(); }

std::unique_ptr<TokenDecoder> strip_decoder(char32_t character, size_t left, size_t right) {
  return std::make_unique<StripDecoder>(character, left, right);
}

std::unique_ptr<TokenDecoder> blanks_decoder() { return std::make_unique<BlanksDecoder>(); }

}  // namespace bev

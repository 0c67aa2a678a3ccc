#include "data/preprocess/document_encoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "text/sentence_splitter.h"
#include "text/utf8.h"

namespace bev {

namespace {

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// The beginning of a text that Megatron-LM gives to Punkt at once: 1,000,000 characters.
std::string_view megatron_part(std::string_view text) {
  constexpr size_t kCharacters = 1'000'000;
  if (text.size() <= kCharacters) return text;
  size_t characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && characters++ == kCharacters) return text.substr(0, at);
  }
  return text;
}

}  // namespace

DocumentEncoder::DocumentEncoder(std::unique_ptr<Tokenizer> tokenizer,
                                 const EncoderOptions& options)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      reader_(options.keys),
      before_(options.keys.size()) {
  if (options_.punkt != nullptr) punkt_.emplace(options_.punkt);
}

void DocumentEncoder::encode(const TextChunk& chunk, int64_t first_record, EncodedChunk& out) {
  const size_t files = options_.kind == InputKind::Jsonl ? options_.keys.size() : 1;
  out.parts.resize(files * static_cast<size_t>(options_.partitions));
  for (EncodedDocuments& part : out.parts) part.clear();
  out.rejected.clear();
  out.documents = out.blank_lines = 0;
  out.bytes = static_cast<int64_t>(chunk.text.size());
  if (chunk.cut_record > 0) {
    out.bytes = chunk.cut_record;
    out.rejected.push_back(
        {.line = chunk.first_line,
         .why = format("{} bytes are more than a line may have; --max-line-size allows more",
                       with_commas(chunk.cut_record)),
         .text = chunk.text,
         .bytes = chunk.cut_record});
    return;
  }
  if (options_.kind == InputKind::Text) {
    for_each_document(chunk.text, options_.documents, [&](std::string_view document) {
      if (const size_t valid = valid_utf8_prefix(document); !is_kept(document, valid)) {
        const std::string_view before(chunk.text.data(), document.data() + valid);
        out.rejected.push_back(
            {.line = chunk.first_line + std::count(before.begin(), before.end(), '\n'),
             .why = format("byte 0x{:02x} is not UTF-8, and the tokenizer would store another "
                           "character",
                           static_cast<unsigned char>(document[valid])),
             .text = std::string(document),
             .bytes = std::ssize(document)});
        return;
      }
      const std::span<const std::string_view> texts(&document, 1);
      encode_document(options_.split_sentences ? sentences_of(texts) : texts, out.parts.front());
      ++out.documents;
    });
    return;
  }
  int64_t record = first_record, line_number = chunk.first_line;
  for (std::string_view rest = chunk.text; !rest.empty(); ++record, ++line_number) {
    const size_t newline = rest.find('\n');
    const std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    if (is_blank_line(line)) {
      ++out.blank_lines;
      continue;
    }
    std::string why = encode_line(line, static_cast<size_t>(record % options_.partitions), out);
    if (why.empty()) {
      ++out.documents;
    } else {
      out.rejected.push_back({.line = line_number,
                              .why = std::move(why),
                              .text = std::string(line),
                              .bytes = static_cast<int64_t>(line.size())});
    }
  }
}

bool DocumentEncoder::is_kept(std::string_view text, size_t valid) {
  if (valid == text.size()) return true;
  ids_.clear();
  tokenizer_->encode(text, ids_);
  return tokenizer_->decode(ids_, SpecialIds::LeaveOut) == text;
}

std::string DocumentEncoder::encode_line(std::string_view line, size_t partition,
                                         EncodedChunk& out) {
  if (std::string why = reader_.read(line); !why.empty()) return why;
  const auto partitions = static_cast<size_t>(options_.partitions);
  for (size_t key = 0; key < options_.keys.size(); ++key)
    before_[key] = out.parts[key * partitions + partition].sizes();
  try {
    for (size_t key = 0; key < options_.keys.size(); ++key)
      // A list is sentences already.
      encode_document(options_.split_sentences && !reader_.is_list(key)
                          ? sentences_of(reader_.texts(key))
                          : reader_.texts(key),
                      out.parts[key * partitions + partition]);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    for (size_t key = 0; key < options_.keys.size(); ++key)
      out.parts[key * partitions + partition].cut_to(before_[key]);
    return error.what();
  }
  return {};
}

void DocumentEncoder::encode_document(std::span<const std::string_view> texts,
                                      EncodedDocuments& out) {
  int32_t sequences = 0;
  // The end of the document belongs to its last sequence that has tokens: one is held back.
  held_.clear();
  const auto put_held = [&] {
    if (held_.empty()) return;
    out.add_sequence(held_, options_.type);
    ++sequences;
  };
  for (const std::string_view text : texts) {
    ids_.clear();
    tokenizer_->encode(text, ids_);
    if (ids_.empty()) continue;
    put_held();
    std::swap(held_, ids_);
  }
  if (options_.append_eod && !held_.empty()) held_.push_back(*tokenizer_->eod_id());
  put_held();
  out.sequences.push_back(sequences);
}

std::span<const std::string_view> DocumentEncoder::sentences_of(
    std::span<const std::string_view> texts) {
  sentences_.clear();
  const auto blanks = options_.keep_newlines ? SentenceBlanks::Keep : SentenceBlanks::Trim;
  for (const std::string_view text : texts) {
    if (!punkt_) {
      split_sentences(text, blanks, sentences_);
    } else if (options_.kind == InputKind::Text) {
      punkt_->split(text, blanks, sentences_);
    } else {
      for (std::string_view rest = text; !rest.empty();) {
        const std::string_view part = megatron_part(rest);
        punkt_->split(part, blanks, sentences_);
        rest.remove_prefix(part.size());
      }
    }
  }
  return sentences_;
}

}  // namespace bev

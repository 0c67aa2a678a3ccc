// bevatron preprocess: text files to token files.
#include <array>
#include <cstdio>
#include <vector>

#include "app/own_flags.h"
#include "app/progress_line.h"
#include "app/verbs.h"
#include "base/check.h"
#include "data/documents.h"
#include "data/token_file.h"
#include "text/byte_tokenizer.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 5> kFlags{{
    {"--input", "FILE ...", "plain text, one or more files; their documents in this order"},
    {"--output-prefix", "PREFIX", "writes PREFIX.bin and PREFIX.idx"},
    {"--tokenizer-type", "NAME", "byte: each byte is a token, 256 ends a document"},
    {"--documents", "NAME", "line, paragraph or file: what a document is [default: line]"},
    {"--append-eod", "", "end every document with the end-of-document token"},
}};

constexpr std::array<std::string_view, 1> kTokenizers{"byte"};

struct Counts {
  int64_t documents = 0, tokens = 0, bytes = 0;
};

Counts tokenize(const std::vector<std::string>& inputs, DocumentBreak documents, bool append_eod,
                TokenFileWriter& writer) {
  std::vector<MappedFile> files;
  Counts counts;
  for (const std::string& input : inputs) {
    files.emplace_back(input);
    counts.bytes += static_cast<int64_t>(files.back().bytes().size());
  }
  ProgressLine progress("tokenizing", counts.bytes, "bytes");
  std::vector<int32_t> ids;
  int64_t done = 0;
  for (const MappedFile& file : files) {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    for_each_document(text, documents, [&](std::string_view document) {
      ids.clear();
      ByteTokenizer().encode(document, ids);
      if (append_eod) ids.push_back(kByteEod);
      writer.add_sequence(ids);
      writer.end_document();
      progress.update(done + (document.data() + document.size() - text.data()));
    });
    done += static_cast<int64_t>(text.size());
  }
  counts.documents = writer.documents();
  counts.tokens = writer.tokens();
  return counts;
}

}  // namespace

int preprocess(std::span<const std::string> args) {
  const auto flags =
      flags_for({.name = "preprocess",
                 .summary = "Turns text into the token files that train and eval read: PREFIX.bin "
                            "with the ids and PREFIX.idx with the index, as Megatron-LM has them.",
                 .flags = kFlags},
                args);
  if (!flags) return 0;
  const std::vector<std::string> inputs = flags->texts("--input");
  const std::string prefix = flags->path("--output-prefix");
  BEV_CHECK(!inputs.empty() && !prefix.empty(), Usage,
            "{} is missing; `bevatron preprocess --input FILE --output-prefix PREFIX "
            "--tokenizer-type byte` is the least",
            inputs.empty() ? "--input" : "--output-prefix");
  const auto ending = std::filesystem::path(prefix).extension();
  // Whoever reads such a name takes the ending for that of the files.
  BEV_CHECK(ending != ".bin" && ending != ".idx", Usage,
            "--output-prefix {}: a name without {} is wanted, since .bin and .idx are added",
            prefix, ending.string());
  BEV_CHECK(flags->has("--tokenizer-type"), Usage,
            "--tokenizer-type is missing; byte is what this version has");
  flags->choice("--tokenizer-type", 0, kTokenizers);
  const auto documents = static_cast<DocumentBreak>(
      flags->choice("--documents", static_cast<size_t>(DocumentBreak::Line), kDocumentBreakNames));

  TokenFileWriter writer(prefix, token_type_for(kByteVocab));
  const Counts counts = tokenize(inputs, documents, flags->has("--append-eod"), writer);
  BEV_CHECK(counts.tokens > 0, Data, "{}: there is no text to tokenize", inputs.front());
  writer.commit();
  fmt::print("{}.bin, {}.idx: {} documents, {} tokens of {} bytes of text\n", prefix, prefix,
             with_commas(counts.documents), with_commas(counts.tokens), with_commas(counts.bytes));
  return 0;
}

}  // namespace bev::app

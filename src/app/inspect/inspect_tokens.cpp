#include <algorithm>
#include <bit>
#include <cstdio>

#include "app/inspect/inspect_verbs.h"
#include "base/crypto.h"
#include "base/format.h"
#include "base/json.h"
#include "base/text_table.h"
#include "data/token_file.h"

namespace bev::app {

namespace {

// Documents whose length lies in [from, to].
struct Bin {
  int64_t from = 0, to = 0, documents = 0;
};

struct TokenFileSummary {
  int64_t shortest = 0, longest = 0, empty = 0;  // lengths of sequences; documents without one
  int64_t largest_id = -1;
  std::vector<Bin> histogram;  // 0, 1, 2-3, 4-7, ...
};

int64_t document_tokens(const TokenFile& file, int64_t document) {
  const TokenIndex& index = file.index();
  return file.stream_begin(index.document_begin(document + 1)) -
         file.stream_begin(index.document_begin(document));
}

TokenFileSummary facts_of(const TokenFile& file) {
  const TokenIndex& index = file.index();
  TokenFileSummary f;
  if (index.sequences() > 0) f.shortest = INT64_MAX;
  for (int64_t i = 0; i < index.sequences(); ++i) {
    f.shortest = std::min(f.shortest, index.length(i));
    f.longest = std::max(f.longest, index.length(i));
  }
  for (int64_t i = 0; i < index.documents(); ++i) {
    f.empty += index.document_begin(i) == index.document_begin(i + 1) ? 1 : 0;
    const auto tokens = static_cast<uint64_t>(document_tokens(file, i));
    const auto bin = static_cast<size_t>(std::bit_width(tokens));
    while (f.histogram.size() <= bin) {
      const size_t at = f.histogram.size();
      const int64_t from = at == 0 ? 0 : int64_t{1} << (at - 1);
      f.histogram.push_back({.from = from, .to = at == 0 ? 0 : 2 * from - 1});
    }
    ++f.histogram[bin].documents;
  }
  if (index.tokens() > 0) f.largest_id = file.largest_id();
  return f;
}

struct ShownDocument {
  int64_t document = 0, tokens = 0;
  std::vector<int32_t> ids;
  std::string text;
};

std::vector<ShownDocument> documents_of(const TokenFile& file, const FlagValues& flags) {
  const TokenIndex& index = file.index();
  std::vector<ShownDocument> shown;
  if (index.documents() == 0) return shown;
  const int64_t first = flags.integer("--document", 0, 0, index.documents() - 1);
  const int64_t last =
      first + std::min(flags.integer("--first", 1, 0, 1 << 20), index.documents() - first);
  const int64_t most = flags.integer("--tokens", 16, 0, 1 << 24);
  const auto tokenizer =
      names_tokenizer(flags) ? open_tokenizer(tokenizer_from_flags(flags)) : nullptr;
  for (int64_t i = first; i < last; ++i) {
    ShownDocument& each = shown.emplace_back();
    each.document = i;
    each.tokens = document_tokens(file, i);
    each.ids.resize(static_cast<size_t>(std::min(each.tokens, most)));
    file.read(file.stream_begin(index.document_begin(i)), each.ids, INT32_MAX);
    if (tokenizer) each.text = tokenizer->decode(each.ids);
  }
  return shown;
}

std::string checksum(const std::filesystem::path& path) { return sha256(MappedFile(path).bytes()); }

void print_histogram(const std::vector<Bin>& histogram) {
  int64_t most = 1;
  for (const Bin& bin : histogram) most = std::max(most, bin.documents);
  TextTable row("  {:>24} tokens {:>14}  {}");
  for (const Bin& bin : histogram) {
    if (bin.documents == 0) continue;
    const auto bar = static_cast<size_t>((40 * bin.documents + most - 1) / most);
    const std::string range = bin.from == bin.to
                                  ? with_commas(bin.from)
                                  : format("{} to {}", with_commas(bin.from), with_commas(bin.to));
    row(range, with_commas(bin.documents), std::string(bar, '#'));
  }
  fmt::print("{}", row.text);
}

void print_text(const TokenFile& file, const TokenFileSummary& f,
                const std::vector<ShownDocument>& shown, const FlagValues& flags) {
  const TokenIndex& index = file.index();
  print_row("token file", file.prefix().string());
  print_row("type", std::string(name_of(index.type())));
  print_row("documents",
            format("{} ({} without a sequence)", with_commas(index.documents()), f.empty));
  print_row("sequences",
            format("{} of {} to {} tokens", with_commas(index.sequences()), f.shortest, f.longest));
  print_row("tokens", with_commas(index.tokens()));
  if (f.largest_id >= 0) print_row("largest id", with_commas(f.largest_id));
  if (flags.has("--checksum")) {
    print_row("sha256 .bin", checksum(bin_path(file.prefix())));
    print_row("sha256 .idx", checksum(idx_path(file.prefix())));
  }
  if (index.documents() > 1) {
    print_row("lengths", "documents by their tokens");
    print_histogram(f.histogram);
  }
  for (const ShownDocument& each : shown) {
    std::string ids;
    for (const int32_t id : each.ids) ids += format("{}{}", ids.empty() ? "" : " ", id);
    if (std::cmp_less(each.ids.size(), each.tokens)) ids += " ...";
    print_row(format("document {}", each.document), ids);
    if (!each.text.empty()) print_row("text", in_quotes(each.text));
  }
}

void print_json(const TokenFile& file, const TokenFileSummary& f,
                const std::vector<ShownDocument>& shown, const FlagValues& flags) {
  const TokenIndex& index = file.index();
  Json histogram = Json::array(), documents = Json::array();
  for (const Bin& bin : f.histogram)
    histogram.push_back({{"from", bin.from}, {"to", bin.to}, {"documents", bin.documents}});
  for (const ShownDocument& each : shown) {
    documents.push_back({{"document", each.document}, {"tokens", each.tokens}, {"ids", each.ids}});
    if (!each.text.empty()) documents.back()["text"] = each.text;
  }
  Json out{{"prefix", file.prefix().string()},
           {"type", name_of(index.type())},
           {"documents", index.documents()},
           {"empty_documents", f.empty},
           {"sequences", index.sequences()},
           {"shortest_sequence", f.shortest},
           {"longest_sequence", f.longest},
           {"tokens", index.tokens()},
           {"largest_id", f.largest_id},
           {"document_lengths", histogram},
           {"shown", documents}};
  if (flags.has("--checksum"))
    out["sha256"] = {{"bin", checksum(bin_path(file.prefix()))},
                     {"idx", checksum(idx_path(file.prefix()))}};
  fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

void inspect_tokens(const std::string& path, const FlagValues& flags) {
  const TokenFile file(path);
  const TokenFileSummary facts = facts_of(file);
  const std::vector<ShownDocument> shown = documents_of(file, flags);
  if (flags.has("--json"))
    print_json(file, facts, shown, flags);
  else
    print_text(file, facts, shown, flags);
}

}  // namespace bev::app

// SentencePiece models of others, read and used here, against what their own program made of the
// same texts.
#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/sentencepiece/sentencepiece_tokenizer.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Ids = std::vector<int32_t>;

// How many of a group of cases came out wrong; the first is told.
class Tally {
 public:
  void add(bool right, std::string_view what) {
    ++count_;
    if (!right && wrong_++ == 0) first_ = what;
  }

  void tell(const std::string& name, Report& report) const {
    const std::string full = format("{}, {} cases", name, count_);
    if (wrong_ == 0) {
      report.check(full, kHost, 0, 0);
    } else {
      report.fail(full, kHost, format("{} wrong, the first {}", wrong_, in_quotes(first_)));
    }
  }

 private:
  size_t count_ = 0, wrong_ = 0;
  std::string first_;
};

Ids encoded(Tokenizer& tokenizer, std::string_view text) {
  Ids ids;
  tokenizer.encode(text, ids);
  return ids;
}

// The pieces one after another are the normalised text; a byte piece stands for its byte.
std::string joined(const std::vector<std::string>& pieces, const Ids& ids,
                   const std::vector<bool>& is_byte) {
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (is_byte.at(static_cast<size_t>(ids.at(i)))) {
      text += static_cast<char>(std::stoi(pieces[i].substr(3, 2), nullptr, 16));
    } else {
      text += pieces[i];
    }
  }
  return text;
}

void run_texts(const Json& cases, const Json& vocab, SentencePieceTokenizer& tokenizer,
               const std::string& name, Report& report) {
  std::vector<bool> is_byte;
  for (const Json& piece : vocab) is_byte.push_back(piece.at("type") == "byte");
  Tally ids_tally, pieces_tally, normalized_tally, decoded_tally;
  for (const Json& each : cases) {
    const auto text = each.at("text").get<std::string>();
    const Ids ids = encoded(tokenizer, text);
    const std::vector<std::string> pieces = tokenizer.pieces(text);
    ids_tally.add(ids == each.at("ids").get<Ids>(), text);
    pieces_tally.add(each.at("pieces") == pieces, text);
    normalized_tally.add(each.at("normalized") == joined(pieces, ids, is_byte), text);
    decoded_tally.add(each.at("decoded") == tokenizer.decode(ids), text);
  }
  ids_tally.tell(name + ": ids", report);
  pieces_tally.tell(name + ": pieces", report);
  normalized_tally.tell(name + ": normalized", report);
  decoded_tally.tell(name + ": decoded", report);
}

void run_sentencepiece_decode(const Json& cases, const Tokenizer& tokenizer,
                              const std::string& name, Report& report) {
  Tally tally;
  for (const Json& each : cases)
    tally.add(each.at("decoded") == tokenizer.decode(each.at("ids").get<Ids>()),
              each.at("ids").dump());
  tally.tell(name + ": ids to text", report);
}

// What the file says of each piece, and what the tokenizer makes of it.
void run_pieces(const Json& pieces, const SentencePieceFacts& facts, const Tokenizer& tokenizer,
                const std::string& name, Report& report) {
  constexpr std::array<std::string_view, 7> kTypes{"",       "normal", "unknown", "control",
                                                   "normal", "unused", "byte"};
  Tally tally;
  tally.add(pieces.size() == static_cast<size_t>(tokenizer.vocab_size()), "how many");
  for (size_t i = 0; i < std::min(pieces.size(), facts.pieces.size()); ++i) {
    const SentencePieceFacts::Piece& piece = facts.pieces[i];
    const auto id = static_cast<int32_t>(i);
    const std::string name_there = pieces[i].at("piece").get<std::string>();
    const std::string type_there = pieces[i].at("type").get<std::string>();
    const bool unknown = tokenizer.role_id(TokenRole::Unknown) == id;
    tally.add(name_there == piece.text && name_there == tokenizer.token_name(id) &&
                  type_there == kTypes.at(static_cast<size_t>(piece.type)) &&
                  unknown == (type_there == "unknown") &&
                  static_cast<float>(pieces[i].at("score").get<double>()) == piece.score,
              name_there);
  }
  tally.tell(name + ": the vocabulary", report);
}

void run_sentencepiece_files(const Json& files, const fs::path& data, Tokenizer& tokenizer,
                             const std::string& name, Report& report) {
  for (const Json& entry : files) {
    const auto file = entry.at("file").get<std::string>();
    if (data.empty() || !fs::exists(data / file)) {
      report.skip(name + "/" + file, "its text is not here");
      continue;
    }
    const std::string text = read_text(data / file);
    std::string_view rest = text;
    Ids ids;
    while (!rest.empty()) {
      const size_t newline = rest.find('\n');
      tokenizer.encode(rest.substr(0, newline), ids);
      rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    }
    const Json& lines = entry.at("lines");
    const std::vector<uint16_t> narrow(ids.begin(), ids.end());
    const auto first = lines.at("first").get<Ids>(), last = lines.at("last").get<Ids>();
    Tally tally;
    tally.add(lines.at("count") == ids.size(), "how many");
    tally.add(ids.size() >= first.size() && std::equal(first.begin(), first.end(), ids.begin()),
              "the first");
    tally.add(ids.size() >= last.size() && std::equal(last.rbegin(), last.rend(), ids.rbegin()),
              "the last");
    tally.add(lines.at("sha256_u16le") == sha256(std::as_bytes(std::span(narrow))), "all");
    tally.tell(name + "/" + file + ": lines", report);
  }
}

}  // namespace

void run_sentencepiece(const fs::path& file, const fs::path& data, const std::string& name,
                       Report& report) {
  const Json all = read_json(file);
  for (const auto& [model, settings] : all.at("settings").items()) {
    const std::string case_name = name + "/" + model;
    const fs::path path = file.parent_path() / "sentencepiece" / (model + ".model");
    if (!fs::exists(path)) {
      report.skip(case_name, "the model is not here");
      continue;
    }
    report.guarded(case_name, kHost, [&] {
      const std::string content = read_text(path);
      SentencePieceTokenizer tokenizer(content, path.string(), SentencePieceRules::Plain, 0);
      const Json& pieces = all.at(model + "_pieces");
      run_texts(all.at(model), pieces, tokenizer, case_name, report);
      run_sentencepiece_decode(all.at(model + "_decode"), tokenizer, case_name, report);
      run_pieces(pieces, read_sentencepiece_facts(content, path.string()), tokenizer, case_name,
                 report);
      run_sentencepiece_files(all.at(model + "_files"), data, tokenizer, case_name, report);
    });
  }
}

}  // namespace bev::golden

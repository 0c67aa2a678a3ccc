#include "text/huggingface/bpe_model.h"

#include "base/format.h"
#include "text/bpe/bpe_merge.h"
#include "text/bpe/byte_alphabet.h"
#include "text/utf8.h"

namespace bev {

BpeModel::BpeModel(TokenNames names, MergeTable merges, Options options, bool words_are_apart)
    : TokenModel(std::move(names)),
      merges_(std::move(merges)),
      options_(options),
      words_are_apart_(words_are_apart) {
  for (size_t c = 0; c < ascii_.size(); ++c)
    ascii_[c] = names_.find(std::string(1, static_cast<char>(c))).value_or(-1);
  if (options_.unit == Unit::Byte)
    for (int byte = 0; byte < 256; ++byte)
      bytes_.push_back(start_of(name_of_bytes(std::string(1, static_cast<char>(byte)))));
}

BpeModel::Start BpeModel::start_of(std::string_view name) const {
  if (const std::optional<int32_t> id = names_.find(name)) return {StartKind::Token, {*id}};
  if (options_.byte_fallback) {
    Start start{StartKind::Bytes, {}};
    for (const char byte : name)
      if (const auto id = names_.find(format("<0x{:02X}>", static_cast<unsigned char>(byte))))
        start.ids.push_back(*id);
    if (start.ids.size() == name.size()) return start;
  }
  if (options_.unknown) return {StartKind::Unknown, {}};
  return {};
}

// An unknown character is written only when a token or another unknown follows, or at the end, so
// that bytes come before the unknown in front of them. That is what the library does, and files
// without all 256 bytes were used with it.
void BpeModel::append(const Start& start, bool& unknown_due, std::vector<int32_t>& ids) const {
  const bool unknown = start.kind == StartKind::Unknown;
  if (unknown_due && (start.kind == StartKind::Token || (unknown && !options_.fuse_unknown))) {
    ids.push_back(*options_.unknown);
    unknown_due = false;
  }
  unknown_due = unknown_due || unknown;
  ids.insert(ids.end(), start.ids.begin(), start.ids.end());
}

void BpeModel::append_character(std::string_view character, bool& unknown_due,
                                std::vector<int32_t>& ids) const {
  const int32_t id = character.size() == 1 ? ascii_[static_cast<unsigned char>(character[0])] : -1;
  if (id >= 0 && !unknown_due) {
    ids.push_back(id);
  } else {
    append(start_of(character), unknown_due, ids);
  }
}

std::optional<int32_t> BpeModel::whole(std::string_view piece) const {
  if (options_.unit == Unit::Character) return names_.find(piece);
  return names_.find(name_of_bytes(piece));
}

void BpeModel::encode(std::string_view piece, std::vector<int32_t>& ids) const {
  ids.clear();
  if (options_.ignore_merges) {
    if (const std::optional<int32_t> id = whole(piece)) return ids.push_back(*id);
  }
  bool unknown_due = false;
  if (options_.unit == Unit::Byte) {
    for (const char byte : piece)
      append(bytes_[static_cast<unsigned char>(byte)], unknown_due, ids);
  } else {
    for (size_t at = 0; at < piece.size();) {
      const size_t length = utf8_character(piece.data() + at).length;
      append_character(piece.substr(at, length), unknown_due, ids);
      at += length;
    }
  }
  if (unknown_due) ids.push_back(*options_.unknown);
  ids.resize(merge_tokens(merges_, ids));
}

}  // namespace bev

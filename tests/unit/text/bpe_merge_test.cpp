#include "text/bpe/bpe_merge.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "text/bpe/piece_cache.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

Ids merged(size_t (*merge)(const MergeTable&, std::span<int32_t>), const MergeTable& table,
           Ids tokens) {
  tokens.resize(merge(table, tokens));
  return tokens;
}

// Word for word: the first pair in the order of merges, the leftmost of several.
Ids naive(const MergeTable& table, Ids tokens) {
  for (;;) {
    Merge best = kNoMerge;
    size_t place = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const Merge merge = table.find(tokens[i], tokens[i + 1]);
      if (order_of(merge) >= order_of(best)) continue;
      best = merge;
      place = i;
    }
    if (best == kNoMerge) return tokens;
    tokens[place] = token_of(best);
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

// Merges of random tokens, so that results merge again, also by an earlier rule.
MergeTable random_table(std::mt19937& random, int32_t alphabet, int32_t tokens, size_t count) {
  MergeTable table(count);
  for (uint32_t order = 0; order < count; ++order) {
    const auto any = [&] { return static_cast<int32_t>(random() % static_cast<uint32_t>(tokens)); };
    const int32_t result = alphabet + any() % (tokens - alphabet);
    (void)table.insert(any(), any(), make_merge(order, result));
  }
  return table;
}

TEST(MergeTable, FindsWhatWasPutIn) {
  MergeTable table(1000);
  for (int32_t i = 0; i < 1000; ++i)
    EXPECT_TRUE(table.insert(i, i * i % 1000, make_merge(static_cast<uint32_t>(i), i + 7)));
  EXPECT_FALSE(table.insert(3, 9, make_merge(0, 1)));
  for (int32_t i = 0; i < 1000; ++i) {
    const Merge found = table.find(i, i * i % 1000);
    EXPECT_EQ(order_of(found), static_cast<uint32_t>(i));
    EXPECT_EQ(token_of(found), i + 7);
    EXPECT_EQ(table.find(i, 1000 + i), kNoMerge);
  }
  EXPECT_EQ(MergeTable(0).find(0, 0), kNoMerge);
}

TEST(BpeMerge, OrderDecidesNotPlace) {
  MergeTable table(3);
  table.insert('b', 'c', make_merge(0, 300));
  table.insert('a', 'b', make_merge(1, 301));
  table.insert('a', 300, make_merge(2, 302));
  for (const auto merge : {merge_short, merge_long, merge_tokens}) {
    EXPECT_EQ(merged(merge, table, {'a', 'b', 'c'}), Ids{302});
    EXPECT_EQ(merged(merge, table, {'a', 'b', 'x'}), (Ids{301, 'x'}));
    EXPECT_EQ(merged(merge, table, {'b', 'c', 'b'}), (Ids{300, 'b'}));
    EXPECT_EQ(merged(merge, table, {'x'}), Ids{'x'});
    EXPECT_EQ(merged(merge, table, {}), Ids{});
  }
}

TEST(BpeMerge, OfOverlappingPairsTheLeftmost) {
  MergeTable table(2);
  table.insert('a', 'a', make_merge(0, 300));
  table.insert(300, 300, make_merge(1, 301));
  for (const auto merge : {merge_short, merge_long}) {
    EXPECT_EQ(merged(merge, table, {'a', 'a', 'a'}), (Ids{300, 'a'}));
    EXPECT_EQ(merged(merge, table, Ids(7, 'a')), (Ids{301, 300, 'a'}));
  }
}

TEST(BpeMerge, AllWaysGiveTheSame) {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const auto alphabet = static_cast<int32_t>(1 + random() % 5);
    const int32_t tokens = alphabet + 1 + static_cast<int32_t>(random() % 30);
    const MergeTable table = random_table(random, alphabet, tokens, 1 + random() % 60);
    Ids piece(random() % (kShortPiece + 1));
    for (int32_t& token : piece)
      token = static_cast<int32_t>(random() % static_cast<uint32_t>(alphabet));
    const Ids expected = naive(table, piece);
    ASSERT_EQ(merged(merge_short, table, piece), expected) << round;
    ASSERT_EQ(merged(merge_long, table, piece), expected) << round;
  }
}

TEST(BpeMerge, BothSidesOfTheBorderOfLengths) {
  std::mt19937 random(12);
  const MergeTable table = random_table(random, 3, 40, 200);
  for (size_t size = kShortPiece - 1; size <= kShortPiece + 2; ++size) {
    Ids piece(size);
    for (int32_t& token : piece) token = static_cast<int32_t>(random() % 3);
    EXPECT_EQ(merged(merge_tokens, table, piece), naive(table, piece));
  }
}

// With time growing as the square this would not end while anyone waits for a test.
TEST(BpeMerge, ALongPieceIsNotQuadratic) {
  MergeTable table(20);
  for (int32_t i = 0; i < 20; ++i) table.insert(i, i, make_merge(static_cast<uint32_t>(i), i + 1));
  Ids piece(size_t{1} << 20, 0);
  EXPECT_EQ(merged(merge_tokens, table, piece), Ids{20});
}

TEST(PieceCache, KeepsWhatWasPutIn) {
  PieceCache cache(2);
  const std::string text = "abcdefghijklmnopqrstuvwxyz0123456789";
  const auto key = [&](size_t length) {
    return PieceCache::key_of(std::string_view(text).substr(0, length), text.size());
  };
  const Ids ids{1, 2, 3, 4, 5, 6, 7};
  for (size_t length = 1; length <= PieceCache::kBytes; ++length) {
    EXPECT_EQ(cache.find(key(length)), nullptr);
    const size_t count = 1 + length % PieceCache::kIds;
    cache.put(key(length), std::span(ids).first(count));
    const PieceCache::Entry* found = cache.find(key(length));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(Ids(found->ids.begin(), found->ids.begin() + found->count),
              Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

// What stands behind a piece, or that nothing may be read there, makes no difference; its length
// does, even where its bytes are zeros.
TEST(PieceCache, AKeyIsThePieceAlone) {
  const std::string zeros(40, '\0'), first = std::string(31, 'x') + "same", second(40, 'x');
  for (size_t length = 1; length <= PieceCache::kBytes; ++length) {
    const auto key_in = [&](const std::string& text, size_t readable) {
      return PieceCache::key_of(std::string_view(text).substr(0, length), readable);
    };
    EXPECT_EQ(key_in(first, first.size()), key_in(second, second.size()));
    EXPECT_EQ(key_in(first, first.size()), key_in(std::string(length, 'x'), length));
    EXPECT_EQ(key_in(zeros, zeros.size()), key_in(zeros, length));
    if (length == 1) continue;
    const PieceCache::Key shorter =
        PieceCache::key_of(std::string_view(zeros).substr(0, length - 1), zeros.size());
    EXPECT_FALSE(key_in(zeros, zeros.size()) == shorter);
  }
}

}  // namespace
}  // namespace bev

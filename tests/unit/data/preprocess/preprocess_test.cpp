#include "data/preprocess/preprocess.h"

#include <gtest/gtest.h>

#include <random>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/open_tokenizer.h"
#include "unit/data/token_files.h"

namespace bev::test {
namespace {

using Document = std::vector<Sequence>;

std::vector<Document> documents_of(const std::filesystem::path& prefix) {
  const TokenFile file(prefix);
  const TokenIndex& index = file.index();
  std::vector<Document> documents;
  for (int64_t d = 0; d < index.documents(); ++d) {
    Document& document = documents.emplace_back();
    for (int64_t i = index.document_begin(d); i < index.document_begin(d + 1); ++i) {
      Sequence& ids = document.emplace_back(static_cast<size_t>(index.length(i)));
      file.read(file.stream_begin(i), ids, INT32_MAX);
    }
  }
  return documents;
}

class PreprocessTest : public testing::Test {
 protected:
  std::string file(const std::string& name, std::string_view content) const {
    write_bytes(directory_ / name, content);
    return (directory_ / name).string();
  }

  PreprocessOptions options(const std::vector<std::string>& inputs) const {
    PreprocessOptions o;
    o.inputs = inputs;
    o.prefix = directory_ / "out";
    return o;
  }

  // With numbers as text.
  static PreprocessReport run(const PreprocessOptions& options) {
    return preprocess(options, NullTokenizer(1000, 999),
                      [](const PreprocessCounts&) { return true; });
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path()))
      all.push_back(entry.path().filename().string());
    std::sort(all.begin(), all.end());
    return all;
  }

  TemporaryDirectory directory_;
};

TEST_F(PreprocessTest, DocumentsSentencesAndTheirEnd) {
  auto o = options({file("a.jsonl",
                         "{\"text\": \"1 2 3\"}\n{\"text\": \"\"}\n\n"
                         "{\"text\": [\"4\", \"\", \"5 6\", \"\"]}\n{\"text\": [\"\"]}\n"
                         "{\"text\": \"7\"}")});
  run(o);
  EXPECT_EQ(documents_of(directory_ / "out_text_document"),
            (std::vector<Document>{{{1, 2, 3}}, {}, {{4}, {5, 6}}, {}, {{7}}}));
  o.append_eod = true;
  const PreprocessReport report = run(o);
  // The end belongs to the last sequence that has tokens; an empty document has none.
  EXPECT_EQ(documents_of(directory_ / "out_text_document"),
            (std::vector<Document>{{{1, 2, 3, 999}}, {}, {{4}, {5, 6, 999}}, {}, {{7, 999}}}));
  EXPECT_EQ(report.counts.documents, 5);
  EXPECT_EQ(report.counts.tokens, 10);
  EXPECT_EQ(report.counts.blank_lines, 1);
  EXPECT_EQ(report.counts.rejected, 0);
}

TEST_F(PreprocessTest, OneFileForEachKey) {
  auto o =
      options({file("a.jsonl", "{\"b\": \"1\", \"a\": \"2\"}\n{\"a\": \"3\", \"b\": \"4\"}\n")});
  o.keys = {"a", "b"};
  o.split_sentences = true;
  const PreprocessReport report = run(o);
  EXPECT_EQ(documents_of(directory_ / "out_a_sentence"), (std::vector<Document>{{{2}}, {{3}}}));
  EXPECT_EQ(documents_of(directory_ / "out_b_sentence"), (std::vector<Document>{{{1}}, {{4}}}));
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.files[1].tokens, 2);
}

// Megatron-LM gives Punkt 1,000,000 characters at a time; plain text is not cut.
TEST_F(PreprocessTest, PunktGetsPartsOfLongDocuments) {
  std::string numbers;
  for (int i = 0; i < 500'000; ++i) numbers += "1 ";
  auto o = options({file("a.jsonl", "{\"text\": \"" + numbers + "2\"}\n")});
  o.split_sentences = true;
  o.punkt = std::make_shared<const PunktParameters>();
  run(o);
  const std::vector<Document> cut = documents_of(directory_ / "out_text_sentence");
  ASSERT_EQ(cut.size(), 1u);
  ASSERT_EQ(cut[0].size(), 2u);
  EXPECT_EQ(cut[0][0].size(), 500'000u);
  EXPECT_EQ(cut[0][1].size(), 1u);
  o.inputs = {file("a.txt", numbers + "2\n")};
  o.kind = InputKind::Text;
  run(o);
  const std::vector<Document> whole = documents_of(directory_ / "out_sentence");
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].size(), 1u);
}

std::string many_lines(size_t count) {
  std::mt19937 random(11);
  std::string all;
  for (size_t i = 0; i < count; ++i) {
    all += "{\"text\": \"";
    for (size_t n = random() % 50; n > 0; --n) all += std::to_string(random() % 1000) + " ";
    all += i % 97 == 13 ? "bad\"}\n" : "\"}\n";
  }
  return all;
}

TEST_F(PreprocessTest, FilesDoNotDependOnTheWorkers) {
  auto o = options({file("a.jsonl", many_lines(40'000)), file("b.jsonl", many_lines(500))});
  o.max_rejected = 1000;
  o.append_eod = true;
  std::string bin, idx, rejected;
  for (const int64_t workers : {1, 2, 7}) {
    o.workers = workers;
    const PreprocessReport report = run(o);
    EXPECT_EQ(report.counts.rejected, 413 + 6);
    const auto prefix = directory_ / "out_text_document";
    if (workers == 1) {
      bin = read_text(bin_path(prefix));
      idx = read_text(idx_path(prefix));
      rejected = read_text(directory_ / "out.rejected.jsonl");
      EXPECT_GT(bin.size(), size_t{1} << 20);
      continue;
    }
    EXPECT_TRUE(read_text(bin_path(prefix)) == bin);
    EXPECT_TRUE(read_text(idx_path(prefix)) == idx);
    EXPECT_TRUE(read_text(directory_ / "out.rejected.jsonl") == rejected);
  }
}

// Line i belongs to partition i mod N, rejected and blank lines counted, across files.
TEST_F(PreprocessTest, PartitionsDealTheLines) {
  auto o = options({file("a.jsonl",
                         "{\"text\": \"0\"}\n{\"text\": \"1\"}\nbad\n{\"text\": \"3\"}\n\n"
                         "{\"text\": \"5\"}"),
                    file("b.jsonl", "{\"text\": \"6\"}\n{\"text\": \"7\"}\n")});
  o.partitions = 3;
  for (const int64_t workers : {1, 3}) {
    o.workers = workers;
    run(o);
    EXPECT_EQ(documents_of(directory_ / "out_text_document"),
              (std::vector<Document>{{{0}}, {{3}}, {{6}}, {{1}}, {{7}}, {{5}}}));
  }
}

TEST_F(PreprocessTest, RejectedLinesAreKeptWithTheirReason) {
  auto o = options({file("a.jsonl",
                         "{\"text\": \"1\"}\nno json\n{\"other\": 1}\n{\"text\": \"2 x\"}\n"
                         "{\"text\": \"\xFF\"}\n{\"text\": 5}\n{\"text\": \"3\"}\n")});
  const PreprocessReport report = run(o);
  EXPECT_EQ(documents_of(directory_ / "out_text_document"), (std::vector<Document>{{{1}}, {{3}}}));
  EXPECT_EQ(report.counts.rejected, 5);
  ASSERT_EQ(report.first_rejected.size(), 3u);
  EXPECT_NE(report.first_rejected[0].find("a.jsonl, line 2: column 1: a JSON object"),
            std::string::npos)
      << report.first_rejected[0];
  std::vector<Json> rows;
  const std::string text = read_text(directory_ / "out.rejected.jsonl");
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    rows.push_back(parse_json(text.substr(at, text.find('\n', at) - at), "rejected"));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].at("text"), "no json");
  EXPECT_EQ(rows[1].at("line"), 3);
  EXPECT_EQ(rows[2].at("why").get<std::string>().find("the null tokenizer reads numbers"), 0u);
  EXPECT_EQ(rows[3].at("text_base64"), "eyJ0ZXh0IjogIv8ifQ==");
  // The next run without such lines leaves no old file behind.
  o.inputs = {file("a.jsonl", "{\"text\": \"1\"}\n")};
  run(o);
  EXPECT_EQ(names(), (std::vector<std::string>{"a.jsonl", "out_text_document.bin",
                                               "out_text_document.idx"}));
}

// Also when the fault comes behind sequences, or keys, that were good.
// Plain text that is not UTF-8 is set aside, unless bytes are tokens.
TEST_F(PreprocessTest, PlainTextIsUtf8) {
  auto o = options({file("a.txt", "a\nb\n\nc \xE4\n\nd\n")});
  o.kind = InputKind::Text;
  o.documents = DocumentBreak::Paragraph;
  o.prefix = directory_ / "out";
  const auto encode = [&](const Tokenizer& tokenizer) {
    return preprocess(o, tokenizer, [](const PreprocessCounts&) { return true; });
  };
  EXPECT_EQ(encode(ByteTokenizer()).counts.rejected, 0);
  EXPECT_EQ(documents_of(directory_ / "out").size(), 3u);

  std::string words;
  for (const char* word : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"})
    words += std::string(word) + "\n";
  TokenizerSpec spec;
  spec.kind = TokenizerKind::BertLower;
  spec.vocab_file = file("vocab.txt", words);
  spec.add_template = false;
  const PreprocessReport report = encode(*open_tokenizer(spec));
  EXPECT_EQ(report.counts.documents, 2);
  EXPECT_EQ(documents_of(directory_ / "out"), (std::vector<Document>{{{5, 6}}, {{8}}}));
  ASSERT_EQ(report.first_rejected.size(), 1u);
  EXPECT_EQ(report.first_rejected[0],
            (directory_ / "a.txt").string() +
                ", line 4: byte 0xe4 is not UTF-8, and the tokenizer would store another "
                "character");
}

TEST_F(PreprocessTest, NothingOfARejectedLineIsLeft) {
  auto o =
      options({file("a.jsonl",
                    "{\"a\": \"1\", \"b\": \"2\"}\n{\"a\": [\"3\", \"4\", \"x\"], \"b\": \"5\"}\n"
                    "{\"a\": \"6\", \"b\": \"x\"}\n{\"a\": \"7\", \"b\": \"8\"}\n")});
  o.keys = {"a", "b"};
  EXPECT_EQ(run(o).counts.rejected, 2);
  EXPECT_EQ(documents_of(directory_ / "out_a_document"), (std::vector<Document>{{{1}}, {{7}}}));
  EXPECT_EQ(documents_of(directory_ / "out_b_document"), (std::vector<Document>{{{2}}, {{8}}}));
}

TEST_F(PreprocessTest, TooManyRejectedLinesEndTheRun) {
  auto o = options({file("a.jsonl", "bad\n{\"text\": \"1\"}\nworse\n")});
  o.max_rejected = 2;
  EXPECT_EQ(run(o).counts.rejected, 2);
  std::filesystem::remove(directory_ / "out_text_document.bin");
  std::filesystem::remove(directory_ / "out_text_document.idx");
  o.max_rejected = 1;
  expect_error(ErrorKind::Data, "a.jsonl, line 3", [&] { run(o); });
  EXPECT_EQ(names(), (std::vector<std::string>{"a.jsonl", "out.rejected.jsonl"}));
  // All of them wrong is an error however many are allowed.
  o.inputs = {file("a.jsonl", "bad\n")};
  o.max_rejected = 100;
  expect_error(ErrorKind::Data, "no line can be used", [&] { run(o); });
}

TEST_F(PreprocessTest, LongLinesAreRejectedToo) {
  std::string numbers;
  for (int i = 0; i < 3000; ++i) numbers += "7 ";
  auto o = options(
      {file("a.jsonl", "{\"text\": \"1\"}\n{\"text\": \"" + numbers + "\"}\n{\"text\": \"2\"}\n")});
  EXPECT_EQ(run(o).counts.rejected, 0);
  o.longest_line = 5000;
  EXPECT_EQ(run(o).counts.rejected, 1);
  EXPECT_EQ(documents_of(directory_ / "out_text_document"), (std::vector<Document>{{{1}}, {{2}}}));
}

TEST_F(PreprocessTest, PlainText) {
  auto o = options({file("a.txt", "1 2\n3\n\n4\n")});
  o.kind = InputKind::Text;
  run(o);
  EXPECT_EQ(documents_of(directory_ / "out"), (std::vector<Document>{{{1, 2}}, {{3}}, {{4}}}));
  o.documents = DocumentBreak::Paragraph;
  run(o);
  EXPECT_EQ(documents_of(directory_ / "out"), (std::vector<Document>{{{1, 2, 3}}, {{4}}}));
  o.longest_line = 4;
  expect_error(ErrorKind::Data, "a document has more than 4 bytes", [&] { run(o); });
}

TEST_F(PreprocessTest, AStoppedRunLeavesNothing) {
  const auto o = options({file("a.jsonl", many_lines(100'000))});
  const PreprocessReport report =
      preprocess(o, NullTokenizer(1000, 999), [](const PreprocessCounts&) { return false; });
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(names(), std::vector<std::string>{"a.jsonl"});
}

TEST_F(PreprocessTest, ErrorsInTheMiddleLeaveNothing) {
  const auto o = options({file("a.jsonl", many_lines(80)), (directory_ / "none.jsonl").string()});
  expect_error(ErrorKind::Data, "none.jsonl: No such file", [&] { run(o); });
  EXPECT_EQ(names(), std::vector<std::string>{"a.jsonl"});
}

TEST_F(PreprocessTest, NoTextIsAnError) {
  expect_error(ErrorKind::Data, "there is no text to tokenize",
               [&] { run(options({file("a.jsonl", "\n \n")})); });
}

}  // namespace
}  // namespace bev::test

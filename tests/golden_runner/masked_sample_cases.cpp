// Samples of BERT and T5 by Megatron-LM: NumPy's random numbers, sentence mappings, tokens, masks,
// labels.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "data/bert_dataset.h"
#include "data/megatron/numpy_random.h"
#include "data/t5_dataset.h"
#include "golden_runner/cases.h"
#include "golden_runner/sample_files.h"
#include "text/huggingface/bert_vocab.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

constexpr double kShortProbability = 0.1, kMaskProbability = 0.15;

Json drawn(NumpyRandom& random, const std::string& call, const Json& arguments) {
  if (call == "random") return random.random();
  if (call == "randint")
    return random.integer(arguments.at(0).get<int64_t>(), arguments.at(1).get<int64_t>());
  if (call == "choice") return ngram_words(random.random());
  if (call == "geometric") return random.geometric(arguments.at(0).get<double>());
  BEV_CHECK(call == "shuffle", Data, "the call {} is not known", call);
  std::vector<int64_t> all(arguments.at(0).get<size_t>());
  std::iota(all.begin(), all.end(), 0);
  random.shuffle(all);
  return all;
}

void run_numpy(const fs::path& file, const std::string& name, Report& report) {
  for (const Json& row : read_json(file)) {
    NumpyRandom random(row.at("seed").get<uint32_t>());
    size_t wrong = 0;
    for (const Json& call : row.at("calls"))
      wrong += drawn(random, call.at(0).get<std::string>(), call.at(1)) == call.at(2) ? 0 : 1;
    report.check_same(format("{} seed {}: {} calls", name, row.at("seed").get<uint32_t>(),
                             row.at("calls").size()),
                      wrong);
  }
}

fs::path vocabulary_above(const fs::path& dir) {
  for (fs::path parent = dir; parent != parent.parent_path(); parent = parent.parent_path())
    if (fs::exists(parent / "data" / "bert" / "vocab.txt"))
      return parent / "data" / "bert" / "vocab.txt";
  return {};
}

// A file of samples, and the version whose rules it follows.
class SampleFile {
 public:
  SampleFile(const fs::path& file, Compat compat, std::string name, Report& report)
      : dir_(file.parent_path()),
        all_(read_json(file)),
        config_(all_.at("config")),
        compat_(compat),
        name_(std::move(name)),
        report_(report),
        tokens_(std::make_shared<const TokenFile>(
            dir_ / (config_.at("data").get<std::string>() + "_text_sentence"))) {
    // "bert_s64_seed7" of "main_bert_s64_seed7.json".
    const std::string stem = file.stem().string();
    arrays_ = stem.substr(stem.find('_') + 1);
  }

  bool is_bert() const { return config_.at("kind") == "bert"; }

  // Null: the vocabulary is not here.
  void run(const Tokenizer* tokenizer, std::string_view source) {
    const auto weights = parse_split(all_.at("split").get<std::string>());
    BEV_CHECK(weights.has_value(), Data, "the split is not understood");
    const auto ranges = split_sequences(*weights, tokens_->index().documents(), compat_);
    for (size_t split = 0; split < 2; ++split) {
      const SentencePart part{.documents = ranges[split],
                              .order = SampleOrder::Megatron,
                              .wanted = all_.at("sizes").at(split).get<int64_t>(),
                              .seed = config_.at("seed").get<uint64_t>()};
      if (is_bert()) {
        run_bert(part, kSplits[split], tokenizer, source);
      } else {
        run_t5(part, kSplits[split], tokenizer, source);
      }
    }
  }

 private:
  int64_t length() const { return config_.at("seq").get<int64_t>(); }

  void run_bert(const SentencePart& part, const std::string& split, const Tokenizer* tokenizer,
                std::string_view source) {
    BertSamplesSpec spec{.part = part,
                         .sequence = length(),
                         .pairs = config_.value("binary", true),
                         .short_probability = kShortProbability,
                         .mask_probability = kMaskProbability,
                         .vocab = INT32_MAX};
    if (tokenizer != nullptr)
      spec.vocabulary =
          std::make_shared<const MaskingVocabulary>(masking_vocabulary(*tokenizer, source));
    const BertDataset samples(tokens_, spec);
    check_mapping(samples.runs(), split);
    check_rows(split, tokenizer != nullptr,
               [&](const Json& row) { return bert_agrees(samples, row, spec.vocabulary->pad); });
  }

  void run_t5(const SentencePart& part, const std::string& split, const Tokenizer* tokenizer,
              std::string_view source) {
    T5SamplesSpec spec{.part = part,
                       .sequence = length(),
                       .decoder_sequence = config_.at("dec").get<int64_t>(),
                       .short_probability = kShortProbability,
                       .mask_probability = kMaskProbability,
                       .vocab = INT32_MAX};
    if (tokenizer != nullptr)
      spec.vocabulary = std::make_shared<const SpanVocabulary>(span_vocabulary(*tokenizer, source));
    const T5Dataset samples(tokens_, spec);
    check_mapping(samples.runs(), split);
    check_rows(split, tokenizer != nullptr,
               [&](const Json& row) { return t5_agrees(samples, row); });
  }

  void check_mapping(const SentenceRuns& runs, const std::string& split) {
    std::vector<int64_t> mapping;
    for (int64_t i = 0; i < runs.count(); ++i) {
      const SentenceRun& run = runs.at(i);
      mapping.insert(mapping.end(), {run.begin, run.end, run.target});
    }
    const SafetensorsReader arrays(dir_ / "mappings.safetensors");
    size_t wrong = read_integers(arrays, arrays_ + "." + split) == mapping ? 0 : 1;
    wrong += all_.at(split).at("samples") == runs.count() ? 0 : 1;
    report_.check_same(format("{} {}: mapping of {} samples", name_, split, runs.count()), wrong);
  }

  template <class Agrees>
  void check_rows(const std::string& split, bool has_vocabulary, Agrees agrees) {
    const Json& rows = all_.at(split).at("rows");
    const std::string case_name = format("{} {}: {} samples", name_, split, rows.size());
    if (!has_vocabulary)
      return report_.skip(case_name, "the vocabulary data/bert/vocab.txt is not here");
    size_t wrong = 0;
    for (const Json& row : rows) wrong += agrees(row) ? 0 : 1;
    report_.check_same(case_name, wrong);
  }

  bool truncated(const SentenceRun& run) const {
    return tokens_->stream_begin(run.end) - tokens_->stream_begin(run.begin) > run.target;
  }

  bool bert_agrees(const BertDataset& samples, const Json& row, int32_t pad) const {
    const auto index = row.at("sample").get<int64_t>();
    HostBatch batch;
    batch.resize(1, masked_batch(length(), length()));
    samples.read(index, batch, 0);
    const auto size = static_cast<size_t>(length());
    std::string types(size, '0'), used(size, '0'), losses(size, '0');
    std::vector<int32_t> labels(size, -1);
    for (size_t i = 0; i < size; ++i) {
      types[i] = batch.types[i] == 1 ? '1' : '0';
      // main takes every [PAD] for padding, also one drawn to replace a masked token.
      const bool is_hole = compat_ == Compat::Main && batch.tokens[i] == pad;
      used[i] = static_cast<int64_t>(i) < batch.lengths[0] && !is_hole ? '1' : '0';
      if (batch.weight[i] == 0) continue;
      const auto at = static_cast<size_t>(batch.marked[i]);
      losses[at] = '1';
      labels[at] = batch.targets[i];
    }
    return row.at("text").get<std::vector<int32_t>>() == batch.tokens && row.at("types") == types &&
           row.at("padding_mask") == used && row.at("loss_mask") == losses &&
           row.at("labels") == labels && row.at("is_random") == batch.label[0] &&
           row.at("truncated") == (truncated(samples.runs().at(index)) ? 1 : 0);
  }

  // Classic's square masks follow from the lengths and are not in the file.
  bool t5_agrees(const T5Dataset& samples, const Json& row) const {
    const auto index = row.at("sample").get<int64_t>();
    HostBatch batch;
    batch.resize(1, encoder_decoder_batch(length(), config_.at("dec").get<int64_t>()));
    samples.read(index, batch, 0);
    const HostText &encoder = batch.text(kEncoderText), &decoder = batch.text(kDecoderText);
    const auto used = [](const HostText& text) {
      std::string mask(text.tokens.size(), '0');
      std::fill_n(mask.begin(), text.lengths[0], '1');
      return mask;
    };
    std::vector<int32_t> labels = decoder.targets;
    for (size_t i = 0; i < labels.size(); ++i)
      if (decoder.weight[i] == 0) labels[i] = -1;
    const bool masks_agree = !row.contains("enc_mask") || (row.at("enc_mask") == used(encoder) &&
                                                           row.at("dec_mask") == used(decoder));
    return masks_agree && row.at("text_enc").get<std::vector<int32_t>>() == encoder.tokens &&
           row.at("text_dec").get<std::vector<int32_t>>() == decoder.tokens &&
           row.at("labels") == labels && row.at("loss_mask") == digits_of(decoder.weight) &&
           row.at("truncated") == (truncated(samples.runs().at(index)) ? 1 : 0);
  }

  fs::path dir_;
  Json all_, config_;
  Compat compat_;
  std::string name_, arrays_;
  Report& report_;
  std::shared_ptr<const TokenFile> tokens_;
};

class Folder {
 public:
  Folder(const fs::path& dir, std::string name, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        report_(report),
        manifest_(read_json(dir / "manifest.json")),
        vocabulary_(vocabulary_above(dir)) {}

  void run() {
    const Json equal = manifest_.value("classic_files_equal_to_main", Json::array());
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(dir_))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string stem = file.stem().string();
      if (file.filename() == "numpy_random.json") {
        const std::string case_name = name_ + "/" + stem;
        report_.guarded(case_name, kHost, [&] { run_numpy(file, case_name, report_); });
      } else if (stem.starts_with("classic_")) {
        samples(file, Compat::Classic, stem);
      } else if (stem.starts_with("main_")) {
        samples(file, Compat::Main, stem);
        // Files that both versions write alike are kept once.
        const std::string classic = "classic_" + stem.substr(stem.find('_') + 1);
        if (std::find(equal.begin(), equal.end(), classic + ".json") != equal.end())
          samples(file, Compat::Classic, classic);
      }
    }
  }

 private:
  void samples(const fs::path& file, Compat compat, const std::string& stem) {
    const std::string case_name = name_ + "/" + stem;
    report_.guarded(case_name, kHost, [&] {
      SampleFile cases(file, compat, case_name, report_);
      const auto tokenizer = tokenizer_of(compat, cases.is_bert() ? 0 : 100, case_name);
      cases.run(tokenizer.get(), vocabulary_.string());
    });
  }

  // With the ids that the manifest states. Null: the file is not here.
  std::unique_ptr<Tokenizer> tokenizer_of(Compat compat, int64_t extra_ids,
                                          const std::string& name) {
    if (vocabulary_.empty()) return nullptr;
    const bool classic = compat == Compat::Classic;
    auto tokenizer = std::make_unique<PipelineTokenizer>(
        read_bert_vocab(vocabulary_, {.classic = classic, .extra_ids = extra_ids}));
    const Json& stated =
        manifest_.at("tokenizers")
            .at(format("{}, {} extra ids", classic ? "classic" : "main", extra_ids));
    const MaskingVocabulary found = masking_vocabulary(*tokenizer, vocabulary_.string());
    bool same = stated.at("cls") == found.words.classify &&
                stated.at("sep") == found.words.separate && stated.at("mask") == found.mask &&
                stated.at("pad") == found.pad && stated.at("inv_vocab") == found.ids;
    if (extra_ids > 0) {
      const SpanVocabulary spans = span_vocabulary(*tokenizer, vocabulary_.string());
      const std::vector<int32_t>& ids = spans.sentinels;
      same = same && std::ssize(ids) == extra_ids && stated.at("bos") == spans.begin &&
             stated.at("eos") == spans.end &&
             stated.at("extra_ids") == Json{ids[0], ids[1], ids.back()};
    }
    report_.check_same(name + ": ids", same ? 0 : 1);
    return tokenizer;
  }

  fs::path dir_;
  std::string name_;
  Report& report_;
  Json manifest_;
  fs::path vocabulary_;
};

}  // namespace

bool is_masked_samples(const fs::path& dir) {
  return fs::exists(dir / "mappings.safetensors") && fs::exists(dir / "numpy_random.json");
}

void run_masked_samples(const fs::path& dir, const std::string& name, Report& report) {
  Folder(dir, name, report).run();
}

}  // namespace bev::golden

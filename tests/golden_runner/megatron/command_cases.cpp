// Command lines of others, given to the program as they are, with small files in the place of
// theirs. train is a dry run. Each outcome is compared with the expected one, and
// written as rows of a table where BEVATRON_COMMAND_TABLE names a file.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"
#include "golden_runner/cases.h"
#include "golden_runner/own_program.h"
#include "golden_runner/scratch_folder.h"

namespace fs = std::filesystem;

namespace bev::golden {

namespace {

using Args = std::vector<std::string>;

Args words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool has(const Args& args, std::string_view word) { return std::ranges::count(args, word) > 0; }

std::string joined(const Args& args) { return format("{}", fmt::join(args, " ")); }

void run_well(const std::string& command, const fs::path& folder) {
  const int code = run_program(words_of(command), folder);
  BEV_CHECK(code == 0, Data, "bevatron {}: exit code {}: {}", command, code,
            read_text(folder / "log"));
}

// A folder with a small file for every name in the command lines. /data stands for data/ in it.
class Workplace {
 public:
  explicit Workplace(const fs::path& vocabularies) {
    const fs::path corpus = path() / "data" / "corpus", vocab = path() / "data" / "vocab";
    for (const char* folder : {"corpus", "vocab", "tokenizers/mixtral", "eval", "wikitext-103"})
      fs::create_directories(path() / "data" / folder);
    fs::copy(vocabularies / "gpt2" / "vocab.json", vocab / "gpt2-vocab.json");
    fs::copy(vocabularies / "gpt2" / "merges.txt", vocab / "gpt2-merges.txt");
    for (const char* name : {"uncased", "cased"})
      fs::copy(vocabularies / "bert" / "vocab.txt",
               vocab / format("bert-large-{}-vocab.txt", name));
    run_well("corpus --output text --bytes 300K", path());
    run_well(
        "preprocess --input text --output-prefix documents --append-eod --tokenizer-type "
        "GPT2BPETokenizer --vocab-file data/vocab/gpt2-vocab.json --merge-file "
        "data/vocab/gpt2-merges.txt",
        path());
    run_well(
        "preprocess --input text --output-prefix sentences --split-sentences --punkt none "
        "--tokenizer-type BertWordPieceLowerCase --vocab-file "
        "data/vocab/bert-large-uncased-vocab.txt",
        path());
    for (const char* name : {"my", "first", "second", "third"})
      link_tokens("documents", corpus / format("{}_text_document", name));
    link_tokens("sentences_sentence", corpus / "my_text_sentence");
    run_well("tokenizer train --type bpe --vocab-size 300 --output data/tokenizers/llama3 text",
             path());
    run_well(
        "tokenizer train --type sentencepiece-bpe --vocab-size 500 --output "
        "data/tokenizers/mixtral/tokenizer text",
        path());
  }

  const fs::path& path() const { return scratch_.path(); }

  // A model and the files to evaluate it on.
  void add_model() {
    const std::string text = read_text(path() / "text");
    const std::string_view first(text.data(), text.find('\n'));
    const std::string line = Json{{"text", first}}.dump() + "\n";
    std::ofstream(path() / "data" / "eval" / "lambada") << line << line;
    std::ofstream(path() / "data" / "lambada_test.jsonl") << line << line;
    std::ofstream(path() / "data" / "webtext.test.jsonl") << line << line;
    std::ofstream(path() / "data" / "wikitext-103" / "wiki.test.tokens") << text.substr(0, 4000);
    for (const char* file : {"gpt2-vocab.json", "gpt2-merges.txt"})
      fs::create_symlink(path() / "data" / "vocab" / file, path() / file);
    run_well(
        "train pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 16 "
        "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 --train-iters 1 "
        "--lr 1e-4 --eval-iters 0 --device cpu --data-path documents --vocab-file gpt2-vocab.json "
        "--merge-file gpt2-merges.txt --train.output checkpoints/gpt2_345m",
        path());
    fs::create_directories(path() / "data" / "checkpoints");
    fs::create_symlink(path() / "checkpoints" / "gpt2_345m",
                       path() / "data" / "checkpoints" / "run1");
  }

 private:
  void link_tokens(const std::string& prefix, const fs::path& name) const {
    for (const char* ending : {".bin", ".idx"})
      fs::create_symlink(path() / (prefix + ending), name.string() + ending);
  }

  ScratchFolder scratch_;
};

// A shell script or another program: what takes its place.
struct OtherCommand {
  std::string_view word;  // of the command line
  std::string_view instead;
};
constexpr OtherCommand kOtherCommands[] = {
    {"scripts/pretrain_bert.sh", "configs/bert-24x1024.toml"},
    {"pretrain_bert_distributed.sh", "launch --nproc_per_node 8 train configs/bert-24x1024.toml"},
    {"pretrain_bert_model_parallel.sh",
     "launch --nproc_per_node 8 train configs/bert-24x1024.toml --parallel.tensor 2"},
    {"pretrain_bert_tfrecords",
     "refused: no TFRecords; `preprocess --split-sentences` on the text"},
    {"pretrain_bert_sentencepiece",
     "configs/bert-24x1024.toml, --tokenizer-type SentencePieceTokenizer"},
    {"pretrain_gpt2_distributed.sh", "--model.preset gpt2-345m --parallel.ranks 8"},
    {"pretrain_gpt2_model_parallel.sh",
     "--model.preset gpt2-345m --parallel.ranks 8 --parallel.tensor 2"},
    {"scripts/pretrain_gpt2.sh", "--model.preset gpt2-345m"},
    {"generate_text.sh", "`bevatron generate DIR --interactive`"},
    {"bert4_scripts", "configs/bert-4x128.toml"},
    {"t5_scripts", "configs/t5-small.toml"},
    {"data-preprocessing.sbatch", "`bevatron preprocess` in a script of the cluster"},
    {"data-preproc-llama2.sbatch", "`bevatron preprocess` in a script of the cluster"},
    {"pre-train-llama2.sbatch", "--model.preset llama2-7b"},
    {"distributed-training.sbatch", "its torchrun line, as above"},
    {"tr1-13B-round1.slurm", "--model.preset tr1-13b"},
    {"jobscript_175B.sbatch", "--model.preset gpt3-175b"},
    {"jube", "refused: another program; `bevatron bench step` measures"},
};

// Words that are added to a command line that has none of `unless`.
struct Addition {
  std::string_view script;  // part of its name; empty: all
  std::vector<std::string_view> unless;
  std::string words;
};

const std::vector<Addition>& additions() {
  static const std::vector<Addition> all{
      {"", {"--num-layers", "--encoder-num-layers"}, "--num-layers 4"},
      {"", {"--hidden-size"}, "--hidden-size 128"},
      {"", {"--num-attention-heads"}, "--num-attention-heads 16"},
      {"bert", {"--seq-length"}, "--seq-length 512"},
      {"gpt", {"--seq-length"}, "--seq-length 2048"},
      {"bert", {"--max-position-embeddings"}, "--max-position-embeddings 512"},
      {"gpt", {"--max-position-embeddings"}, "--max-position-embeddings 2048"},
      {"", {"--micro-batch-size", "--batch-size"}, "--micro-batch-size 1"},
      {"", {"--train-iters", "--train-samples"}, "--train-iters 1000"},
      {"", {"--lr"}, "--lr 1e-4"},
      {"bert", {"--vocab-file"}, "--vocab-file data/vocab/bert-large-uncased-vocab.txt"},
      {"gpt",
       {"--vocab-file", "--tokenizer-model"},
       "--vocab-file data/vocab/gpt2-vocab.json --merge-file data/vocab/gpt2-merges.txt"},
      {"", {"--save", "--save-interval"}, "--train.output="},
      {"bert", {"--data-path"}, "--data-path data/corpus/my_text_sentence"},
      {"gpt", {"--data-path"}, "--data-path data/corpus/my_text_document"},
  };
  return all;
}

// Command lines that are refused, by words of them, and why.
struct Refusal {
  std::string_view words, why;
};
constexpr Refusal kRefusals[] = {
    {"--pipeline-model-parallel-size 16 --data-path", "no whole number of copies"},
    {"--fp8-format hybrid", "--fp8-format"},
    {"--num-experts 8", "--num-experts"},
    {"--deepspeed-activation-checkpointing", "--deepspeed-activation-checkpointing"},
    {"--webtext-eval", "--webtext-eval"},
};

std::string first_line_with(const std::string& text, std::string_view start) {
  const size_t at = text.find(start);
  if (at == std::string::npos) return text.substr(0, 200);
  return text.substr(at, text.find('\n', at) - at);
}

std::string shortened(const std::string& line) {
  constexpr size_t kStart = 60, kEnd = 40;
  if (line.size() <= kStart + kEnd) return line;
  return line.substr(0, kStart) + " ... " + line.substr(line.size() - kEnd);
}

class CommandRuns {
 public:
  CommandRuns(const fs::path& file, std::string name, Report& report)
      : commands_(read_json(file.string())), name_(std::move(name)), report_(report) {
    const fs::path vocabularies = vocabulary_folder(file.parent_path());
    if (vocabularies.empty()) {
      report_.skip(name_, "the vocabularies are not here");
      return;
    }
    training_.emplace(vocabularies);
    use_.emplace(vocabularies);
    use_->add_model();
  }

  void run() {
    if (!training_) return;
    size_t number = 0;
    for (const Json& command : commands_.at("commands")) {
      const std::string case_name = format("{}: {}", name_, ++number);
      report_.guarded(case_name, kHost, [&] { one(command, case_name); });
    }
    write_page();
  }

 private:
  void one(const Json& command, const std::string& case_name) {
    auto argv = command.at("argv").get<Args>();
    for (std::string& word : argv)
      if (word.starts_with("/data/")) word = word.substr(1);
    const std::string line = joined(argv);
    std::string outcome;
    const auto* other = std::ranges::find_if(kOtherCommands, [&](const OtherCommand& each) {
      return line.find(each.word) != std::string::npos;
    });
    if (other != std::end(kOtherCommands)) {
      outcome = std::string(other->instead);
      check_recipe(outcome, case_name);
    } else if (line.find("pretrain_") != std::string::npos || argv[0].starts_with("--")) {
      outcome = train(argv, case_name);
    } else {
      outcome = use_model(argv, case_name);
    }
    const std::string source =
        command.contains("script") ? command.at("script").get<std::string>() : shortened(line);
    rows_.push_back(format("| `{}` | {} |", source, outcome));
  }

  // Whether the recipe or the preset that an outcome names exists.
  void check_recipe(const std::string& outcome, const std::string& case_name) {
    for (std::string word : words_of(outcome)) {
      word.erase(std::remove(word.begin(), word.end(), ','), word.end());
      const fs::path file = fs::path(BEV_PROJECT) / word;
      if (word.ends_with(".toml") && fs::exists(BEV_PROJECT))
        report_.check_same(case_name + ": " + word, fs::exists(file) ? 0 : 1);
    }
    if (!outcome.starts_with("--model.preset")) return;
    const std::string plan = "plan --device cuda --train.micro_batch 1 " + outcome;
    report_.check_same(case_name + ": " + outcome,
                       static_cast<size_t>(run_program(words_of(plan), training_->path())));
  }

  // The whole command line: as on a machine with GPUs of any size.
  Args dry_run_of(const Args& argv) const {
    Args args = argv;
    const Args all = words_of("--device cuda --device.memory_gib 1000000 --dry-run");
    args.insert(args.end(), all.begin(), all.end());
    return args;
  }

  std::string train(Args argv, const std::string& case_name) {
    // A piece of a command line without its script.
    std::string changes;
    if (argv[0] == "--alpha") {
      changes = " `pretrain_bert.py --optimizer mylamb3`";
      argv.insert(argv.begin(), {"pretrain_bert.py", "--optimizer", "mylamb3"});
    }
    const std::string line = joined(argv);
    const fs::path& folder = training_->path();
    if (run_program(dry_run_of(argv), folder) == 0) {
      report_.check(case_name + ": runs", kHost, 0, 0);
      return "runs";
    }
    if (const auto flag = std::ranges::find(argv, "--train-data"); flag != argv.end()) {
      changes += format(" `--data-path` instead of `{} {}`,", *flag, *(flag + 1));
      argv.erase(flag, flag + 2);
    }
    for (const Addition& each : additions()) {
      if (line.find(format("pretrain_{}", each.script)) == std::string::npos) continue;
      if (std::ranges::any_of(each.unless, [&](auto flag) { return has(argv, flag); })) continue;
      for (const std::string& word : words_of(each.words)) {
        if (word.starts_with("--")) changes += format(" `{}`", word);
        argv.push_back(word);
      }
    }
    add_ranks(argv, changes);
    int code = run_program(dry_run_of(argv), folder);
    if (read_text(folder / "log").find(": the disk has ") != std::string::npos) {
      changes += " and more disk space than here";
      keep_nothing(argv);
      code = run_program(dry_run_of(argv), folder);
    }
    const std::string log = read_text(folder / "log");
    const auto* refusal = std::ranges::find_if(
        kRefusals, [&](const Refusal& r) { return line.find(r.words) != std::string::npos; });
    if (code == 0) {
      report_.check(format("{}: runs with{}", case_name, changes), kHost, 0, 0);
      return format("runs with{}", changes);
    }
    const std::string error = first_line_with(log, "bevatron: error: ");
    if (refusal == std::end(kRefusals) || log.find(refusal->why) == std::string::npos) {
      report_.fail(case_name, kHost, format("bevatron {}: {}", joined(dry_run_of(argv)), log));
      return "fails";
    }
    report_.check(format("{}: refused: {}", case_name, refusal->why), kHost, 0, 0);
    return format("refused: {}", first_line_with(log, refusal->why));
  }

  static void keep_nothing(Args& argv) {
    for (const char* name : {"--save", "--save-interval"})
      if (const auto flag = std::ranges::find(argv, name); flag != argv.end())
        argv.erase(flag, flag + 2);
    argv.emplace_back("--train.output=");
  }

  // A layout of several ranks without a launcher on the command line has one around it.
  static void add_ranks(Args& argv, std::string& changes) {
    int64_t ranks = 1;
    for (const char* flag : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size"})
      if (const auto found = std::ranges::find(argv, flag); found != argv.end())
        ranks *= std::stoll(*(found + 1));
    const bool is_launched = has(argv, "--nproc_per_node");
    if (ranks == 1 || is_launched) return;
    changes += format(" `--parallel.ranks {}`", ranks);
    argv.insert(argv.end(), {"--parallel.ranks", format("{}", ranks)});
  }

  // The model of the workplace is smaller than those of the command lines.
  std::string use_model(Args argv, const std::string& case_name) {
    std::string changes;
    for (size_t i = 0; i + 1 < argv.size(); ++i) {
      if (argv[i] == "--num-layers") argv[i + 1] = "2";
      if (argv[i] == "--hidden-size") argv[i + 1] = "64";
      if (argv[i] == "--nproc_per_node" && argv[i + 1] != "1") {
        argv[i + 1] = "1";
        changes = " with `--nproc_per_node 1`: one copy of the model";
      }
    }
    const bool serves = joined(argv).find("server.py") != std::string::npos;
    if (serves) argv.insert(argv.end(), {"--port", "0"});
    const int code = run_program(argv, use_->path(), serves ? "serving " : "");
    const std::string log = read_text(use_->path() / "log");
    const auto* refusal =
        std::ranges::find_if(kRefusals, [&](const Refusal& r) { return has(argv, r.words); });
    if (refusal != std::end(kRefusals) && code == 2 &&
        log.find(refusal->why) != std::string::npos) {
      report_.check(format("{}: refused: {}", case_name, refusal->why), kHost, 0, 0);
      return format("refused: {}", first_line_with(log, refusal->why));
    }
    if (code != 0) {
      report_.fail(case_name, kHost, format("bevatron {}: {}", joined(argv), log));
      return "fails";
    }
    report_.check(case_name + ": runs", kHost, 0, 0);
    return "runs" + changes;
  }

  void write_page() const {
    const char* file = std::getenv("BEVATRON_COMMAND_TABLE");
    if (file == nullptr) return;
    std::ofstream page(file, std::ios::app);
    for (const std::string& row : rows_) page << row << "\n";
  }

  Json commands_;
  std::string name_;
  Report& report_;
  std::optional<Workplace> training_, use_;
  std::vector<std::string> rows_;
};

}  // namespace

void run_commands(const fs::path& file, const std::string& name, Report& report) {
  CommandRuns(file, name, report).run();
}

}  // namespace bev::golden

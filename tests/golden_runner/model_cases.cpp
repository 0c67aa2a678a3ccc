// Whole models against PyTorch and transformers: forward, gradients, ten optimizer steps.
#include <algorithm>
#include <cmath>
#include <set>

#include "checkpoint/safetensors.h"
#include "golden_runner/cases.h"
#include "golden_runner/model_run.h"
#include "infer/continuous_batcher.h"
#include "infer/scorer.h"
#include "support/tolerance.h"

namespace bev::golden {

namespace {

namespace fs = std::filesystem;

constexpr double kReferenceBound = 1e-10;

class ModelCases {
 public:
  ModelCases(const fs::path& dir, std::string name, const Place& place, Report& report)
      : dir_(dir),
        name_(std::move(name)),
        place_(place),
        report_(report),
        tokens_(dir / "tokens.safetensors"),
        model_(read_huggingface_config(dir)) {}

  void run() {
    guarded("inference", [&] { inference(); });
    guarded("score", [&] { scores(); });
    guarded("generate", [&] { generations(); });
    guarded("grads", [&] { gradients(); });
    guarded("adamw", [&] { training("adamw"); });
    guarded("sgd", [&] { training("sgd"); });
  }

 private:
  bool exact() const { return place_.device == DeviceKind::Reference; }

  void guarded(const std::string& part, const std::function<void()>& body) {
    report_.guarded(name_ + "/" + part, place_.name(), body);
  }
  void check(const std::string& part, double error, double bound) {
    report_.check(name_ + "/" + part, place_.name(), error, bound);
  }

  // The bound after `passes` times through the model, each of which rounds at every half block.
  double bound(int passes) const {
    if (exact()) return kReferenceBound;
    const ModelConfig& m = model_.model;
    const int64_t tokens = tokens_.micros * tokens_.batch * tokens_.length;
    const int64_t longest = std::max({m.width, m.ffn, m.vocab, tokens});
    const auto stores = static_cast<int>(2 * m.layers + 2);
    return test::tolerance(place_.dtype(), longest, passes * stores);
  }

  // GPT-2's key bias shifts all scores of a query alike and softmax cancels it: its gradient is
  // rounding noise, and Adam divides noise by noise.
  void leave_out_key_bias(const std::string& name, Values& got, Values& expected) const {
    if (model_.family != HuggingFaceFamily::Gpt2 || !name.ends_with("attn.c_attn.bias")) return;
    const auto third = static_cast<std::ptrdiff_t>(expected.size() / 3);
    for (Values* values : {&got, &expected}) {
      values->erase(values->begin() + third, values->begin() + 2 * third);
    }
  }

  using Measure = double (*)(std::span<const double>, std::span<const double>);

  // Compares every tensor of the file; `got` may be longer where the file holds a prefix.
  void compare_file(const std::string& part, const std::vector<NamedValues>& got,
                    bool without_key_bias, Measure measure, double limit) {
    const SafetensorsReader file(dir_ / (part + ".safetensors"));
    std::set<std::string> seen;
    for (const NamedValues& ours : got) {
      const StoredTensor* stored = file.find(ours.name);
      const std::string case_name = part + "/" + ours.name;
      if (stored == nullptr) {
        report_.fail(name_ + "/" + case_name, place_.name(), "the golden file has no such tensor");
        continue;
      }
      seen.insert(ours.name);
      Values expected = file.read_f64(*stored);
      Values values = ours.values;
      if (part == "sgd_after" && values.size() > expected.size()) values.resize(expected.size());
      if (without_key_bias) leave_out_key_bias(ours.name, values, expected);
      check(case_name, measure(values, expected), limit);
    }
    for (const StoredTensor& stored : file.tensors()) {
      if (!seen.contains(stored.name)) {
        report_.fail(name_ + "/" + part + "/" + stored.name, place_.name(),
                     "we have no such tensor");
      }
    }
  }

  void inference() {
    ModelRun run(dir_, tokens_, place_, {.lr = 1});
    const std::vector<HostBatch> batches = tokens_.step(0);
    const std::vector<NamedValues> forward = run.forward(batches.front());
    if (fs::exists(dir_ / "forward.safetensors")) {
      if (place_.is_short()) {
        const SafetensorsReader file(dir_ / "forward.safetensors");
        check("forward/logits",
              relative_error(forward.front().values, file.read_f64(file.at("logits"))), bound(1));
      } else {
        compare_file("forward", forward, false, relative_error, bound(1));
      }
    }
    if (place_.is_short() || !fs::exists(dir_ / "score.json")) return;
    const Json score = read_json(dir_ / "score.json");
    const Values logprobs = token_logprobs(forward.front(), batches.front());
    Values expected, expected_sums = score.at("sum_logprob").get<Values>(), sums;
    for (const Json& row : score.at("token_logprob")) {
      for (const Json& value : row) expected.push_back(value.get<double>());
    }
    const auto length = static_cast<std::ptrdiff_t>(tokens_.length);
    for (auto at = logprobs.begin(); at != logprobs.end(); at += length) {
      double sum = 0;
      for (auto token = at; token != at + length; ++token) sum += *token;
      sums.push_back(sum);
    }
    check("score/token_logprob", relative_error(logprobs, expected), bound(1));
    check("score/sum_logprob", relative_error(sums, expected_sums), bound(1));
    const std::vector<HostBatch> repeated(static_cast<size_t>(tokens_.micros), batches.front());
    const Values mean{run.mean_loss(repeated)}, expected_mean{score.at("mean_loss").get<double>()};
    check("score/mean_loss", relative_error(mean, expected_mean), bound(1));
  }

  // As `eval` finds them: the sequences in one batch.
  void scores() {
    if (place_.is_short() || !fs::exists(dir_ / "score.json")) return;
    const Json golden = read_json(dir_ / "score.json");
    LoadedModel model(open_model_folder(dir_),
                      {.kind = place_.device, .threads = 2, .precision = place_.precision},
                      tokens_.batch, tokens_.length);
    const auto each = tokens_.length + 1;
    Values logprobs, expected;
    Scorer(model).score({.count = tokens_.batch,
                         .read =
                             [&](int64_t index) {
                               const auto begin = tokens_.ids.begin() + index * each;
                               return ScoringItem{.ids = {begin, begin + each}};
                             }},
                        [&](int64_t, std::span<const TokenScore> found) {
                          for (const TokenScore& token : found) logprobs.push_back(-token.loss);
                        });
    for (const Json& row : golden.at("token_logprob"))
      for (const Json& value : row) expected.push_back(value.get<double>());
    check("score/by_eval", relative_error(logprobs, expected), bound(1));
  }

  // Greedy texts of several prompts at a time, with a cache. Where rounding is coarse the likeliest
  // may be another one.
  void generations() {
    if (place_.is_short() || !fs::exists(dir_ / "generate.json")) return;
    const Json golden = read_json(dir_ / "generate.json");
    const ModelFolder folder = open_model_folder(dir_);
    const int64_t length = longest_sequence(folder, 1 << 20);
    LoadedModel model(folder, {.kind = place_.device, .threads = 2, .precision = place_.precision},
                      1, length);
    InferenceEngine decoder(model, {.rows = 2, .length = length, .page = 5});
    ContinuousBatcher batcher(decoder);
    struct Text {
      std::vector<int32_t> ids;
      Values logprobs;
    };
    std::vector<Text> texts(golden.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      GenerationRequest request{.prompt = golden[i].at("prompt").get<std::vector<int32_t>>(),
                                .tokens = golden[i].at("max_new_tokens").get<int64_t>(),
                                .choice = {.temperature = 0}};
      batcher.submit(std::move(request), [&text = texts[i]](const TokenEvent& event) {
        text.ids.push_back(event.token.id);
        text.logprobs.push_back(event.token.logprob);
      });
    }
    while (!batcher.is_idle()) batcher.step();
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = golden[i].at("generated").get<std::vector<int32_t>>();
      const std::string part = format("generate/{}", i);
      check(part + "/ids", texts[i].ids == ids ? 0.0 : 1.0, 0.0);
      check(part + "/logprob",
            relative_error(texts[i].logprobs, golden[i].at("logprob").get<Values>()), bound(1));
    }
  }

  static Values token_logprobs(const NamedValues& logits, const HostBatch& batch) {
    const auto classes = static_cast<size_t>(logits.shape[1]);
    Values result;
    for (size_t t = 0; t < batch.targets.size(); ++t) {
      const std::span<const double> row(logits.values.data() + t * classes, classes);
      const double top = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const double logit : row) sum += std::exp(logit - top);
      result.push_back(row[static_cast<size_t>(batch.targets[t])] - top - std::log(sum));
    }
    return result;
  }

  void gradients() {
    if (!fs::exists(dir_ / "grads.safetensors")) return;
    ModelRun run(dir_, tokens_, place_, {.lr = 1});
    compare_file("grads", run.gradients(tokens_.step(0)), true, relative_error, bound(2));
  }

  void training(const std::string& kind) {
    if (!fs::exists(dir_ / (kind + ".json"))) return;
    const Json golden = read_json(dir_ / (kind + ".json"));
    ModelRun run(dir_, tokens_, place_, optim_of(kind, golden.at("hyper")));
    check_decayed(run, kind, golden);

    Values losses, norms, coefficients, rates;
    for (int64_t step = 0; step < tokens_.steps; ++step) {
      const StepResult result = run.step(tokens_.step(step));
      losses.push_back(result.loss);
      norms.push_back(result.grad_norm);
      coefficients.push_back(run.clip_coefficient(result.grad_norm));
      rates.push_back(result.lr);
    }
    const auto series = [&](const char* key, const Values& got, double limit) {
      check(kind + "/" + key, relative_error(got, golden.at(key).get<Values>()), limit);
    };
    series("loss", losses, bound(2));
    if (place_.is_short()) return;
    series("grad_norm", norms, bound(2));
    series("clip_coefficient", coefficients, bound(2));
    series("lr", rates, 1e-12);
    const Values after{run.mean_loss(tokens_.step(0))};
    const Values expected_after{golden.at("loss_after_on_step_0").get<double>()};
    check(kind + "/loss_after_on_step_0", relative_error(after, expected_after), bound(2));

    const std::vector<NamedValues> weights = run.weights();
    const bool by_rms = kind == "adamw" && !exact();
    compare_file(kind + "_after", weights, kind == "adamw", by_rms ? rms_error : relative_error,
                 by_rms ? kAdamRmsBound : bound(2));
    if (golden.contains("after_sum")) check_sums(kind, golden, weights);
  }

  // Sums over whole parameters, where the file holds only their first rows.
  void check_sums(const std::string& kind, const Json& golden,
                  const std::vector<NamedValues>& weights) {
    Values sums, squares, expected_sums, expected_squares;
    for (const NamedValues& weight : weights) {
      double sum = 0, square = 0;
      for (const double v : weight.values) {
        sum += v;
        square += v * v;
      }
      sums.push_back(sum);
      squares.push_back(square);
      expected_sums.push_back(golden.at("after_sum").at(weight.name).get<double>());
      expected_squares.push_back(golden.at("after_sum_of_squares").at(weight.name).get<double>());
    }
    check(kind + "/after_sum", relative_error(sums, expected_sums), bound(2));
    check(kind + "/after_sum_of_squares", relative_error(squares, expected_squares), bound(2));
  }

  void check_decayed(ModelRun& run, const std::string& kind, const Json& golden) {
    for (const bool decayed : {true, false}) {
      const char* key = decayed ? "decayed" : "not_decayed";
      const std::vector<std::string> ours = run.names(decayed);
      const auto theirs = golden.at(key).get<std::vector<std::string>>();
      const bool equal = std::set<std::string>(ours.begin(), ours.end()) ==
                         std::set<std::string>(theirs.begin(), theirs.end());
      check(kind + "/" + key, equal ? 0.0 : 1.0, 0.0);
    }
  }

  fs::path dir_;
  std::string name_;
  Place place_;
  Report& report_;
  Tokens tokens_;
  HuggingFaceModel model_;
};

}  // namespace

void run_model(const fs::path& dir, const std::string& name, Report& report) {
  for (const Place& place : places(name, report)) {
    report.guarded(name, place.name(), [&] { ModelCases(dir, name, place, report).run(); });
  }
  const std::set<std::string> used{"config.json",
                                   "model.safetensors",
                                   "model.safetensors.index.json",
                                   "tokens.safetensors",
                                   "forward.safetensors",
                                   "grads.safetensors",
                                   "adamw.json",
                                   "adamw_after.safetensors",
                                   "sgd.json",
                                   "sgd_after.safetensors",
                                   "score.json",
                                   "generate.json"};
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    const std::string file = entry.path().filename().string();
    if (used.contains(file) || file.starts_with("model-")) continue;
    report.skip(name + "/" + file, "unknown file");
  }
}

}  // namespace bev::golden

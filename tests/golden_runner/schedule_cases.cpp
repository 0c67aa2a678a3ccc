// Learning rates, weight decay and vocabulary sizes as Megatron-LM computed them.
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "config/resolve.h"
#include "golden_runner/cases.h"
#include "optim/lr_schedule_config.h"

namespace bev::golden {

namespace {

// The same formulas in the same precision: only the order of operations could differ.
constexpr double kBound = 1e-12;

template <class E>
E choice(const Json& name) {
  const auto& names = EnumNames<E>::names;
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<E>(i);
  }
  throw Error(ErrorKind::Data, "no choice is called " + name.dump());
}

bool given(const Json& object, const char* name) {
  return object.contains(name) && !object.at(name).is_null();
}

template <class T>
void set_if_given(const Json& object, const char* name, T& field) {
  if (!given(object, name)) return;
  if constexpr (std::is_enum_v<T>) {
    field = choice<T>(object.at(name));
  } else {
    field = object.at(name).get<T>();
  }
}

// The arguments of Megatron's scheduler object.
LrSchedule spec_of(const Json& args) {
  LrSchedule s;
  set_if_given(args, "init_lr", s.init_lr);
  set_if_given(args, "max_lr", s.max_lr);
  set_if_given(args, "min_lr", s.min_lr);
  set_if_given(args, "lr_warmup_steps", s.warmup);
  set_if_given(args, "lr_decay_steps", s.decay);
  set_if_given(args, "lr_decay_style", s.style);
  set_if_given(args, "lr_wsd_decay_style", s.wsd_style);
  set_if_given(args, "wsd_decay_steps", s.wsd);
  set_if_given(args, "start_wd", s.start_wd);
  set_if_given(args, "end_wd", s.end_wd);
  set_if_given(args, "wd_incr_style", s.wd_ramp);
  set_if_given(args, "wd_incr_steps", s.wd_length);
  return s;
}

// The values of a parameter group: one number for all positions, one per position, or one per
// position and group.
std::vector<double> column(const Json& values, size_t positions, size_t group) {
  if (!values.is_array()) return std::vector<double>(positions, values.get<double>());
  std::vector<double> result;
  for (const Json& value : values) {
    result.push_back((value.is_array() ? value.at(group) : value).get<double>());
  }
  return result;
}

void run_schedule(const Json& entry, const std::string& name, Report& report) {
  const auto positions = entry.at("x").get<std::vector<int64_t>>();
  const Json groups = entry.contains("groups") ? entry.at("groups") : Json::array({Json::object()});
  for (size_t group = 0; group < groups.size(); ++group) {
    Json args = entry.at("args");
    for (const char* key : {"max_lr", "min_lr", "start_wd", "end_wd"}) {
      if (groups.at(group).contains(key)) args[key] = groups.at(group).at(key);
    }
    const LrSchedule spec = spec_of(args);
    const double multiplier = groups.at(group).value("wd_mult", 1.0);
    std::vector<double> rates, decays;
    for (const int64_t x : positions) {
      rates.push_back(learning_rate(spec, x));
      decays.push_back(weight_decay(spec, x) * multiplier);
    }
    const std::string suffix = groups.size() > 1 ? ", group " + std::to_string(group) : "";
    const auto worst = [&](const std::vector<double>& got, const Json& expected) {
      // Value by value: a rate of 1e-9 counts as much as the largest.
      const std::vector<double> wanted = column(expected, positions.size(), group);
      double error = relative_error(got, wanted);
      for (size_t i = 0; i < got.size() && i < wanted.size(); ++i) {
        error = std::max(error, relative_error({&got[i], 1}, {&wanted[i], 1}));
      }
      return error;
    };
    report.check(name + suffix + ": lr", kHost, worst(rates, entry.at("lr")), kBound);
    report.check(name + suffix + ": weight decay", kHost, worst(decays, entry.at("weight_decay")),
                 kBound);
  }
}

// Command-line values with Megatron's defaults where the entry has none.
Config config_of(const Json& args) {
  Config c;
  OptimConfig& o = c.optim;
  o.lr = 0.001;
  set_if_given(args, "train_iters", c.train.iterations);
  set_if_given(args, "train_samples", c.train.samples);
  c.train.micro_batch = 1;
  c.train.global_batch = 8;
  set_if_given(args, "global_batch_size", c.train.global_batch);
  set_if_given(args, "lr", o.lr);
  set_if_given(args, "min_lr", o.min_lr);
  set_if_given(args, "lr_decay_style", o.decay);
  set_if_given(args, "lr_decay_iters", o.decay_iterations);
  set_if_given(args, "lr_decay_samples", o.decay_samples);
  set_if_given(args, "lr_warmup_iters", o.warmup_iterations);
  set_if_given(args, "lr_warmup_samples", o.warmup_samples);
  set_if_given(args, "lr_warmup_fraction", o.warmup_fraction);
  set_if_given(args, "lr_warmup_init", o.warmup_init);
  set_if_given(args, "lr_wsd_decay_style", o.wsd_decay);
  set_if_given(args, "lr_wsd_decay_iters", o.wsd_iterations);
  set_if_given(args, "lr_wsd_decay_samples", o.wsd_samples);
  set_if_given(args, "weight_decay", o.weight_decay);
  set_if_given(args, "start_weight_decay", o.start_weight_decay);
  set_if_given(args, "end_weight_decay", o.end_weight_decay);
  set_if_given(args, "weight_decay_incr_style", o.weight_decay_ramp);
  return c;
}

void run_from_args(const Json& entry, const std::string& name, Report& report) {
  const Config config = config_of(entry.at("args"));
  const int64_t iterations = resolve_iterations(config);
  const LrSchedule got = lr_schedule_from(config, config.train.global_batch, iterations);
  const LrSchedule wanted = spec_of(entry.at("scheduler"));
  const bool equal = got == wanted && entry.at("train_iters") == iterations;
  report.check(name, kHost, equal ? 0.0 : 1.0, 0.0);
}

}  // namespace

void run_schedules(const std::filesystem::path& file, const std::string& name, Report& report) {
  const Json all = read_json(file);
  for (const Json& entry : all.at("schedules")) {
    const std::string case_name = name + "/" + entry.at("name").get<std::string>();
    report.guarded(case_name, kHost, [&] { run_schedule(entry, case_name, report); });
  }
  size_t index = 0;
  for (const Json& entry : all.at("from_args")) {
    const std::string case_name = name + "/from_args " + std::to_string(index++);
    if (given(entry.at("args"), "step_batch_size_schedule")) {
      report.skip(case_name, "step_batch_size_schedule is not in this version");
      continue;
    }
    report.guarded(case_name, kHost, [&] { run_from_args(entry, case_name, report); });
  }
  for (index = 0; index < all.at("resume").size(); ++index) {
    report.skip(name + "/resume " + std::to_string(index), "resuming is not in this version");
  }
}

void run_vocab_padding(const std::filesystem::path& file, const std::string& name, Report& report) {
  const Json table = read_json(file);
  size_t wrong = 0;
  for (const Json& row : table.at("rows")) {
    const int64_t padded =
        padded_vocab(row.at(0).get<int64_t>(), row.at(1).get<int64_t>(), row.at(2).get<int64_t>());
    wrong += row.at(3) == padded ? 0 : 1;
  }
  report.check(name + ": " + std::to_string(table.at("rows").size()) + " rows", kHost,
               static_cast<double>(wrong), 0.0);
}

}  // namespace bev::golden

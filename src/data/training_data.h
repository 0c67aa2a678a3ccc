// The samples that a configuration names: for training, validation and test.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/data_split.h"
#include "data/batch.h"

namespace bev {

// Samples that are asked for in order, each once.
struct HeldSamples {
  std::shared_ptr<const Dataset> samples;  // null: there are none
  int64_t count = 0;
  // Each validation goes on where the one before it ended, as in Megatron-LM; else all begin with
  // the first sample.
  bool goes_on = false;
};

struct TrainingData {
  std::shared_ptr<const Dataset> train;
  HeldSamples valid{}, test{};

  // What was found, for people.
  struct Part {
    Split split{};
    std::filesystem::path prefix;
    SequenceRange range{};
    int64_t tokens = 0, windows = 0;  // windows: samples of one epoch
    double share = 1;                 // of the samples of its split, all shares together 1
    double epochs = 0;                // training: how often the run will read it
  };
  std::vector<Part> parts{};         // empty with made-up tokens
  std::filesystem::path titles{};    // prefix of the file of titles; empty: there is none
  std::vector<std::string> notes{};  // one line each
};

// Opens and checks all files. Files of up to `scan_bytes` are searched for ids beyond the
// vocabulary at once; in larger ones such an id is found when its sample is read. Errors are Data
// errors. REQUIRES: a checked configuration that trains.
TrainingData open_training_data(const Config& config, size_t scan_bytes = size_t{1} << 30);

// How many samples a whole run takes of each split, as Megatron-LM counts them: it decides how many
// epochs are shuffled together.

// Training, validation, test. REQUIRES: a checked configuration.
std::array<int64_t, 3> samples_needed(const Config& config);

// What tells two sets of token files apart without reading all of them.

// A line for each file that the data is read from: its size and a hash of its beginning and its
// end. Files that cannot be read are Data errors.
std::string fingerprint(const TrainingData& data);

}  // namespace bev

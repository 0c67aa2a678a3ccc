// The rules that concern several fields at once. Ranges of single fields are checked where they are
// read (field.h).
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/model_config.h"
#include "config/parse/field.h"

namespace bev {

// What the configuration is for: a plan or a benchmark needs no training length and no data.
enum class Purpose : uint8_t { Plan, Train };

// All violations, in the order of the rules. With `origins` they say where each value came from; a
// rule that reads a doubtful field of `findings` is left out, since that was reported already.
std::vector<Problem> check_config(const Config& config, Purpose purpose = Purpose::Plan,
                                  const Origins& origins = {}, const Findings& findings = {});

// The fields that the rules read, for tests.
std::vector<std::string_view> checked_fields();

// The bounds of single fields, for a model that came neither from flags nor from a TOML file.

// Data error that names `source` and the first field out of its bounds.
void check_model_ranges(const ModelConfig& model, const std::string& source);

}  // namespace bev

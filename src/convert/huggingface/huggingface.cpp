#include "convert/huggingface/huggingface.h"

#include <span>

#include "base/check.h"
#include "checkpoint/safetensors.h"
#include "config/tokenizer_config.h"
#include "convert/huggingface/huggingface_files.h"
#include "convert/huggingface/huggingface_names.h"
#include "convert/huggingface/huggingface_weights.h"
#include "convert/huggingface/huggingface_writer.h"
#include "convert/load_weights.h"
#include "convert/store_weights.h"
#include "convert/transpose.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// The part of our tensor that one tensor of the file holds, in the layout of the file.
std::vector<std::byte> file_layout(const HuggingFaceTensor& tensor, const ConstTensor& value,
                                   Device& device, int64_t vocab) {
  const size_t size = size_of(value.dtype);
  const int64_t columns = value.shape.elements() / value.shape[0];
  const int64_t rows = tensor.vocabulary ? vocab : tensor.rows;
  std::vector<std::byte> bytes(static_cast<size_t>(rows * columns) * size);
  device.download(value.data + static_cast<size_t>(tensor.row_begin * columns) * size, bytes.data(),
                  bytes.size());
  if (!tensor.transposed) return bytes;
  std::vector<std::byte> turned(bytes.size());
  transpose_elements(bytes, rows, columns, size, turned);
  return turned;
}

}  // namespace

void load_huggingface(const fs::path& dir, ParamStore& params) {
  const ErrorContext context(format("reading the model in {}", dir.string()));
  HuggingFaceWeights weights(dir);
  load_weights(weights, params);
  weights.check_tied_head();
  // A stage of a pipeline leaves the tensors of the other stages alone.
  if (params.grid().size(Axis::Pipeline) == 1) weights.check_all_used();
}

void check_huggingface_output(const fs::path& dir, const Config& config) {
  huggingface_family(config);
  check_huggingface_replaceable(dir);
}

void save_huggingface(const fs::path& dir, const Config& config, const ParamStore& params) {
  std::vector<ParamSpec> specs;
  for (const Param* param : params.distinct()) specs.push_back(param->spec);
  StoreWeights weights(params);
  write_huggingface(dir, config, specs, weights,
                    {.files = tokenizer_files(tokenizer_spec(config))});
}

std::vector<NamedValues> huggingface_values(HuggingFaceFamily family, const ParamSpec& spec,
                                            const ConstTensor& tensor, Device& device,
                                            int64_t vocab) {
  BEV_CHECK(tensor.shape == spec.shape && is_contiguous(tensor), Internal,
            "{}: a tensor {} is not the whole parameter {}", spec.name, to_string(tensor.shape),
            to_string(spec.shape));
  std::vector<NamedValues> result;
  for (const HuggingFaceTensor& part : huggingface_tensors(family, spec)) {
    const std::vector<std::byte> bytes = file_layout(part, tensor, device, vocab);
    NamedValues& out = result.emplace_back();
    out.name = part.name;
    out.shape = huggingface_shape(part, spec, vocab);
    out.values.resize(static_cast<size_t>(out.shape.elements()));
    convert_elements(bytes, tensor.dtype, std::as_writable_bytes(std::span(out.values)),
                     DType::f64);
  }
  return result;
}

}  // namespace bev

// bevatron checkpoint export: the tensors of a checkpoint as plain safetensors files.
#include <array>
#include <cstdio>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/cli_flags.h"
#include "app/cli/progress_line.h"
#include "base/format.h"
#include "checkpoint/export_tensors.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 2> kCheckpointExportFlags{{
    {"--optimizer", "", "what the optimizer keeps too: NAME/master, NAME/adam.m ..."},
    {"--file-bytes", "N", "of a folder: how large its files may become [default: 5G]"},
}};

Exported export_with_progress(const CheckpointReader& checkpoint, const std::string& to,
                              const ExportOptions& options) {
  int64_t total = 0, done = 0;
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (options.with_optimizer || parameter_of(name) == name)
      total += static_cast<int64_t>(tensor.bytes());
  ProgressLine progress("exporting", total, "bytes");
  return export_tensors(checkpoint, to, options, [&](size_t bytes) {
    progress.update(done += static_cast<int64_t>(bytes));
  });
}

}  // namespace

int checkpoint_export(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "checkpoint export",
       .summary = "Writes the tensors of a checkpoint, whatever layout wrote it, whole and under "
                  "their global names: to OUT.safetensors, or to a new folder OUT of such files "
                  "with an index. CKPT is a checkpoint, or a folder or run whose newest good one "
                  "is meant. The data are checked as they are read.",
       .flags = kCheckpointExportFlags,
       .positional = "CKPT OUT",
       .min_positional = 2,
       .max_positional = 2},
      args);
  if (!flags) return 0;
  const ExportOptions options{.with_optimizer = flags->has("--optimizer"),
                              .file_bytes = static_cast<size_t>(
                                  flags->size("--file-bytes", 5'000'000'000, 1, int64_t{1} << 50))};
  const CheckpointReader checkpoint(newest_good(flags->positional()[0]).path);
  const std::string to = flags->positional()[1];
  const Exported exported = export_with_progress(checkpoint, to, options);
  fmt::print("{}: {} tensors, {} in {} file{}\n", to, exported.tensors,
             as_bytes(static_cast<double>(exported.bytes)), exported.files.size(),
             exported.files.size() == 1 ? "" : "s");
  return 0;
}

}  // namespace bev::app

// Inference of one batch by a whole model, into the caller's tensors.
#pragma once

#include "infer/inference_stage.h"
#include "infer/loaded_model.h"
#include "pipeline/batch_uploader.h"

namespace bev::test {

// Returns the peaks of the arenas.
inline ArenaSizes forward_with(RankModel& model, const HostBatch& batch,
                               const InferenceOutputs& outputs, const ArenaSizes& sizes) {
  BatchUploader uploader(model.device, sizes.batch, 1);
  Arena keep(model.device, sizes.keep, "activations");
  Arena scratch(model.device, sizes.scratch, "scratch");
  Arena recompute(model.device, sizes.recompute, "recomputation");
  Exec ex{model.device, model.device.compute_stream(), keep, scratch, recompute};
  const TextView micro = uploader.upload(batch, 0)[0];
  InferenceStage(model, model.env.borders.attention).forward(ex, micro, {}, {}, outputs);
  ex.stream.synchronize();
  return {.keep = keep.peak(),
          .batch = uploader.peak(),
          .scratch = scratch.peak(),
          .recompute = recompute.peak()};
}

// REQUIRES: the model is on one rank.
inline void whole_forward(RankModel& model, const HostBatch& batch,
                          const InferenceOutputs& outputs) {
  DryRunModel planned(model.config, 0);
  forward_with(model, batch, outputs, forward_with(planned.model, batch, outputs, {}));
}

}  // namespace bev::test

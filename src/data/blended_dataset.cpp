#include "data/blended_dataset.h"

#include "base/format.h"

namespace bev {

void BlendedSamples::read(int64_t index, HostBatch& batch, int64_t at) const {
  const BlendSchedule::Place place = rule_(index);
  parts_[place.dataset]->read(place.sample, batch, at);
  batch.number_rows(at, index);  // samples of two parts may have the same number
}

std::string BlendedSamples::describe(int64_t index) const {
  const BlendSchedule::Place place = rule_(index);
  return format("sample {} of the blend is {}", index,
                parts_[place.dataset]->describe(place.sample));
}

SampleSource BlendedSamples::source(int64_t index) const {
  const BlendSchedule::Place place = rule_(index);
  return parts_[place.dataset]->source(place.sample);
}

}  // namespace bev

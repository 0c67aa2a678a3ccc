// What happens at the end of a document, a token with an id of its own.
#pragma once

#include "data/batch.h"

namespace bev {

struct DocumentEnds {
  int64_t eod = -1;  // the id
  bool mask_eod = false, reset_positions = false, reset_attention = false;

  bool matter() const { return mask_eod || reset_positions || reset_attention; }
};

// Applies it to the tokens of sequence `at`. The end belongs to the document it ends; what follows
// it starts anew. REQUIRES: start_sequence(at, ...) was called; the batch is packed when attention
// is reset.
void apply_document_ends(const DocumentEnds& ends, HostBatch& batch, int64_t at);

}  // namespace bev

// How many files and connections a process may have open.
#pragma once

namespace bev {

// Raises the limit as far as the system allows without asking anybody: the usual 1024 is less than
// a large job has of ranks or of files.
void allow_many_descriptors();

}  // namespace bev

// This process: its age, its memory, and how many files it may open.
#pragma once

namespace bev {

// Seconds since this process was started; if the system does not report it, since the first call.
double process_seconds();

// Memory of this process that is in use, in bytes; 0 if the system does not report it.
double resident_bytes();

// Raises the limit of open files and connections as far as the system allows without
// privileges: the usual 1024 is less than a large job has of ranks or of files.
void raise_open_file_limit();

}  // namespace bev

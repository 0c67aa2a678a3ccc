// Starts the ranks of one machine, looks after them, starts them again and says how they ended.
#pragma once

#include "launch/attempt.h"
#include "launch/launch_job.h"

namespace bev {

// Returns the exit code: 0, or that of the rank that failed first, 128 + N where signal N killed
// it. A rank that ends with the exit code of a Comm error has been let down by another, which is
// looked for first. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks. When
// one has failed, the others get `until_asked`, then SIGTERM, then `until_killed`, then SIGKILL;
// all are started again as RestartPolicy says, unless a signal asked for the end. No rank outlives
// the calling thread.
//
// Gives what people should read to `note`, lines without the last end. REQUIRES: no other thread of
// this process waits for signals.
int supervise(const LaunchJob& job, const LaunchNote& note);

// A port of this machine that nobody has at the moment.
int free_port();

}  // namespace bev

// A job whose number of machines may change from attempt to attempt.
#pragma once

#include "launch/elastic_rendezvous.h"
#include "launch/launch_job.h"
#include "launch/supervisor.h"

namespace bev {

// Does what supervise() does for the ranks of this machine, in attempts that the first machine's
// launcher calls: beside the port of the ranks, at master_port + 1, launchers that know the secret
// of the job meet there. It waits for machines (ElasticRendezvous), starts the ranks of as many as
// can take part, those of the lowest numbers, and decides after a failure what happens next
// (RestartPolicy). Others wait for the next attempt, and so does a machine that comes later. A
// machine that is gone fails its attempt only; the first machine's end is the end of the job.
//
// Place and number of ranks in `job` do not count; node, first_rank and size are set for each
// attempt. REQUIRES: as supervise().
int supervise_elastic(const LaunchJob& job, const ElasticJob& elastic, const LaunchNote& note);

}  // namespace bev

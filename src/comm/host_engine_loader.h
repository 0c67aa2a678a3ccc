// The plug-ins that move tensors between processes, loaded when they are wanted.
#pragma once

#include "comm/host_engine.h"
#include "comm/mpi_bootstrap.h"
#include "config/choices.h"

namespace bev {

// The library of the engine is loaded from the folder of the running program, from lib/ in it, or
// from lib/ beside it. A Comm error says which file was looked for where, what the loader or the
// library answered, and what would help. The engine outlives its groups, and is destroyed only
// where all ranks have come to a good end. REQUIRES: kind is Mpi or Gloo.
std::unique_ptr<HostEngine> load_host_engine(CommBackend kind, const HostEngineOptions& options);

// For a job that mpirun started, before its engine is made; both start MPI where it has not been
// started. All ranks call mpi_broadcast() together and get what the first one brings.
MpiPlace mpi_place();
std::string mpi_broadcast(const std::string& from_first);

}  // namespace bev

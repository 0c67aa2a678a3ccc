// The functions of NCCL that the program uses, found when ranks are to exchange tensors by it.
#pragma once

#include <nccl.h>

#include <string>

#include "device/cuda/cuda_library.h"

namespace bev::cuda {

struct NcclLibrary {
  // Throws a Comm error where the library cannot be loaded, is too old or lacks a function.
  NcclLibrary();

  CudaLibrary library;
  std::string version;  // "2.28.9"
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;

  // "remote process exited or there was a network error: Connection closed by ...". `comm` may be
  // null.
  std::string words(ncclResult_t result, ncclComm_t comm) const;
};

}  // namespace bev::cuda

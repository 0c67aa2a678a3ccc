#include "comm/cuda/nccl_library.h"

#include "base/check.h"

namespace bev::cuda {

namespace {

constexpr int kOldest = NCCL_VERSION(2, 18, 0);

std::string version_text(int code) {
  return format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace

NcclLibrary::NcclLibrary() {
  std::string why;
  library = CudaLibrary::open({"libnccl.so.2"}, why);
  BEV_CHECK(library.loaded(), Comm,
            "NCCL, by which ranks on several GPUs exchange tensors, is missing: {}. NVIDIA's "
            "package libnccl2 has it; LD_LIBRARY_PATH may name its folder",
            why);
  const auto require = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(symbol));
    BEV_CHECK(function != nullptr, Comm,
              "{} has no {}: it is no NCCL, or older than this program can use (2.18)",
              library.path(), symbol);
  };
  decltype(&ncclGetVersion) get_version = nullptr;
  require(get_version, "ncclGetVersion");
  int code = 0;
  const ncclResult_t result = get_version(&code);
  BEV_CHECK(result == ncclSuccess && code >= kOldest, Comm, "{} is NCCL {}; {} or newer is needed",
            library.path(), version_text(code), version_text(kOldest));
  version = version_text(code);
  require(error_string, "ncclGetErrorString");
  require(last_error, "ncclGetLastError");
  require(unique_id, "ncclGetUniqueId");
  require(init, "ncclCommInitRankConfig");
  require(async_error, "ncclCommGetAsyncError");
  require(destroy, "ncclCommDestroy");
  require(abort, "ncclCommAbort");
  require(group_start, "ncclGroupStart");
  require(group_end, "ncclGroupEnd");
  require(all_reduce, "ncclAllReduce");
  require(all_gather, "ncclAllGather");
  require(reduce_scatter, "ncclReduceScatter");
  require(reduce, "ncclReduce");
  require(broadcast, "ncclBroadcast");
  require(send, "ncclSend");
  require(recv, "ncclRecv");
}

std::string NcclLibrary::words(ncclResult_t result, ncclComm_t comm) const {
  const char* text = error_string(result);
  const char* last = last_error(comm);
  std::string all = text == nullptr ? format("error {}", static_cast<int>(result)) : text;
  if (last != nullptr && *last != '\0') all += format(": {}", last);
  while (!all.empty() && (all.back() == '\n' || all.back() == ' ')) all.pop_back();
  return all;
}

}  // namespace bev::cuda

# The CUDA backend. BEV_CUDA: AUTO builds it where nvcc is, ON insists, OFF leaves it out. Sets
# BEV_HAS_CUDA. Only the runtime is linked, statically; cuBLASLt, cuDNN, NCCL and NVML are loaded when
# a GPU is used, so that the program starts on machines that have none of them.
set(BEV_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set_property(CACHE BEV_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BEV_HAS_CUDA OFF)

if(NOT BEV_CUDA STREQUAL "OFF")
  # nvcc is often installed where PATH does not lead.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(BEV_NVCC nvcc PATHS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    if(BEV_NVCC)
      set(CMAKE_CUDA_COMPILER ${BEV_NVCC})
    endif()
  endif()
  # Machine code for the GPUs of this machine, or for Hopper where there is none: one architecture
  # compiles in half the time of two. The preset `release` has all.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(found "")
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${capabilities}")
      list(TRANSFORM found REPLACE "\\." "")
      list(TRANSFORM found APPEND "-real")
      list(REMOVE_DUPLICATES found)
    endif()
    if(NOT found)
      set(found 90-real)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${found}" CACHE STRING "GPU architectures")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(BEV_HAS_CUDA ON)
  elseif(BEV_CUDA STREQUAL "ON")
    message(FATAL_ERROR "BEV_CUDA is ON, but there is no nvcc: install a CUDA toolkit, put nvcc on "
      "PATH or name it with -DCMAKE_CUDA_COMPILER=...")
  endif()
endif()

if(BEV_HAS_CUDA)
  message(NOTICE "CUDA: ${CMAKE_CUDA_COMPILER} ${CUDAToolkit_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}")
  # CMake 3.25 does not know that nvcc 13 speaks C++20.
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--expt-relaxed-constexpr -lineinfo>")

  # Attention by cuDNN: the C++ frontend (headers only; scripts/install-deps.sh fetches them) and
  # cudnn.h. CUDNN_HOME may be the nvidia/cudnn folder of a Python environment.
  set(BEV_CUDNN_FRONTEND "" CACHE PATH "Folder of cudnn_frontend.h, or above its include/")
  find_path(BEV_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h NO_DEFAULT_PATH PATH_SUFFIXES include
    PATHS ${BEV_CUDNN_FRONTEND} ${PROJECT_SOURCE_DIR}/.deps/cudnn-frontend)
  find_path(BEV_CUDNN_INCLUDE cudnn.h PATH_SUFFIXES include
    HINTS ENV CUDNN_HOME ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(BEV_CUDNN_FRONTEND_INCLUDE BEV_CUDNN_INCLUDE)
  if(BEV_CUDNN_FRONTEND_INCLUDE AND BEV_CUDNN_INCLUDE)
    set(BEV_HAS_CUDNN ON)
    message(NOTICE "cuDNN: ${BEV_CUDNN_INCLUDE}, frontend ${BEV_CUDNN_FRONTEND_INCLUDE}")
  else()
    set(BEV_HAS_CUDNN OFF)
    message(NOTICE "cuDNN: not built, attention is left to our own kernels; cudnn.h: "
      "${BEV_CUDNN_INCLUDE}, cudnn_frontend.h: ${BEV_CUDNN_FRONTEND_INCLUDE}")
  endif()

  # Ranks as processes with a GPU each. NCCL_HOME may be the nvidia/nccl folder of a Python environment.
  find_path(BEV_NCCL_INCLUDE nccl.h PATH_SUFFIXES include
    HINTS ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS})
  mark_as_advanced(BEV_NCCL_INCLUDE)
  if(BEV_NCCL_INCLUDE)
    set(BEV_HAS_NCCL ON)
    message(NOTICE "NCCL: ${BEV_NCCL_INCLUDE}")
  else()
    set(BEV_HAS_NCCL OFF)
    message(NOTICE "NCCL: not built, nccl.h was not found; ranks share one GPU or use processors")
  endif()
else()
  message(NOTICE "CUDA: not built; the cpu and reference devices are (nvcc was not found or BEV_CUDA is OFF)")
endif()

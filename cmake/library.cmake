# bev_library(folder LINK a b ...): one static library per folder of src/, linked to what it may include.
# Folders named cuda/ are built with the CUDA backend only; mpi/ and gloo/ are plug-ins (engines.cmake).
# Files named *_avx512.cpp and *_avx2.cpp are the only ones built for more than the baseline CPU; the
# program chooses among them at run time. The compiler must not fuse multiplications and additions by
# itself there: a fused and a separate activation would then differ in the last bit.
function(bev_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(BEV_HAS_CUDA)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cu)
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "/cuda/")
  endif()
  list(FILTER sources EXCLUDE REGEX "/comm/(mpi|gloo|plugin)/")
  list(TRANSFORM ARG_LINK REPLACE "^bev::" "bev_")
  if(sources)
    add_library(bev_${name} STATIC ${sources})
    target_include_directories(bev_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(bev_${name} PUBLIC ${ARG_LINK} PRIVATE bev_flags)
    foreach(source ${sources})
      if(source MATCHES "_avx512\\.cpp$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
          "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-O3;-ffp-contract=off")
      elseif(source MATCHES "_avx2\\.cpp$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-O3;-ffp-contract=off")
      elseif(source MATCHES "_portable\\.cpp$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off")
      endif()
    endforeach()
  else()
    add_library(bev_${name} INTERFACE)
    target_include_directories(bev_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(bev_${name} INTERFACE ${ARG_LINK})
  endif()
endfunction()

# bev_relocatable(target place): the program looks for its libraries in `place`, beside itself
# (scripts/bundle.sh puts them there), then where the system has them. DT_RPATH, since DT_RUNPATH is
# not used for the libraries of libraries.
function(bev_relocatable target place)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${place}")
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
endfunction()

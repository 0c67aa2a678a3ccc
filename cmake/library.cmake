# bev_library(folder [OPTIMIZE level] LINK a b ...): one static library per folder of src/, linked to
# what it may include. Folders named cuda/ are built with the CUDA backend only; mpi/ and gloo/ are
# plug-ins (engines.cmake). Files named *_avx512.cpp and *_avx2.cpp are the only ones built for more
# than the baseline CPU; the program chooses among them at run time. The compiler must not fuse
# multiplications and additions by itself there: a fused and a separate activation would then differ
# in the last bit.
#
# Three things make the first build short. Sources are compiled several at a time (BEV_UNITY), which
# the presets of developers turn off. Each optimisation level has one precompiled header (BEV_PCH),
# which `make lint` turns off to find missing includes. OPTIMIZE lowers the level where nothing is hot.
option(BEV_UNITY "Compile several sources of a folder as one" OFF)
option(BEV_PCH "Precompile the standard headers" ON)

# bev_compile_faster(target level): unity build and precompiled header.
function(bev_compile_faster target level)
  if(BEV_SANITIZE)
    set(level 1)  # higher levels double the time of sanitizer builds
  endif()
  target_compile_options(${target} PRIVATE "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-O${level}>")
  if(BEV_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # The members of a private class may have types of the unnamed namespace of their source.
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
  endif()
  if(BEV_PCH)
    target_precompile_headers(${target} REUSE_FROM bev_pch_O${level})
  endif()
endfunction()

# The objects for one instruction set must hold no inline function of another file (isa_symbols.sh).
function(bev_compile_alone source)
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# bev_precompile(target level header): a library that holds nothing but that precompiled header.
function(bev_precompile target level header)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch/${target}.cpp CONTENT "")
  add_library(${target} STATIC ${CMAKE_BINARY_DIR}/pch/${target}.cpp)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O${level}>)
  target_link_libraries(${target} PRIVATE bev_flags fmt::fmt
    nlohmann_json::nlohmann_json Threads::Threads)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
    "${PROJECT_SOURCE_DIR}/cmake/precompile.sh")
  set_property(TARGET ${target} APPEND PROPERTY CXX_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endfunction()
if(BEV_PCH)
  foreach(level g 1 2 3)
    bev_precompile(bev_pch_O${level} ${level} ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  endforeach()
endif()

function(bev_library name)
  cmake_parse_arguments(ARG "" "OPTIMIZE" "LINK" ${ARGN})
  if(NOT ARG_OPTIMIZE)
    set(ARG_OPTIMIZE 2)
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  if(BEV_HAS_CUDA)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cu)
    list(APPEND sources ${kernels})
  else()
    list(FILTER sources EXCLUDE REGEX "/cuda/")
  endif()
  list(FILTER sources EXCLUDE REGEX "/comm/(mpi|gloo|plugin)/")
  list(TRANSFORM ARG_LINK REPLACE "^bev::" "bev_")
  add_library(bev_${name} STATIC ${sources})
  target_include_directories(bev_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(bev_${name} PUBLIC ${ARG_LINK} PRIVATE bev_flags)
  bev_compile_faster(bev_${name} ${ARG_OPTIMIZE})
  foreach(source ${sources})
    if(source MATCHES "_avx512\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-O3;-ffp-contract=off")
      bev_compile_alone(${source})
    elseif(source MATCHES "_avx2\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-O3;-ffp-contract=off")
      bev_compile_alone(${source})
    elseif(source MATCHES "_portable\\.cpp$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off")
      bev_compile_alone(${source})
    elseif(source MATCHES "\\.cu$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# bev_relocatable(target place): the program looks for its libraries in `place`, beside itself
# (scripts/bundle.sh puts them there), then where the system has them. DT_RPATH, since DT_RUNPATH is
# not used for the libraries of libraries. The symbols of OpenSSL are hidden (see CMakeLists.txt).
function(bev_relocatable target place)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${place}")
  target_link_options(${target} PRIVATE LINKER:--disable-new-dtags
    LINKER:--exclude-libs,libcrypto.a:libssl.a)
endfunction()

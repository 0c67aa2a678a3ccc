# Engines that move tensors between processes through host memory, each a plug-in of its own beside
# the program, built where its library is: the program starts without them.
set(BEV_ENGINES "")

# A plug-in of another build is refused: it would be called with other arguments than it expects.
file(SHA256 ${PROJECT_SOURCE_DIR}/src/comm/host_engine.h BEV_ENGINE_INTERFACE)
string(SUBSTRING ${BEV_ENGINE_INTERFACE} 0 16 BEV_ENGINE_INTERFACE)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/comm/host_engine.h)

# bev_engine(name LINK a b ...): libbevatron-<name>.so from src/comm/<name>/.
function(bev_engine name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/comm/${name}/*.cpp)
  add_library(bevatron_${name} MODULE ${sources}
    ${PROJECT_SOURCE_DIR}/src/comm/plugin/interface_mark.cpp)
  set_target_properties(bevatron_${name} PROPERTIES OUTPUT_NAME bevatron-${name}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
  target_include_directories(bevatron_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(bevatron_${name} PRIVATE
    BEV_ENGINE_INTERFACE="${BEV_ENGINE_INTERFACE}")
  # mpicxx names libraries that nothing of ours uses.
  target_link_options(bevatron_${name} PRIVATE LINKER:--as-needed)
  target_link_libraries(bevatron_${name} PRIVATE bev_flags ${ARG_LINK})
  bev_relocatable(bevatron_${name} "$ORIGIN")
  set(BEV_ENGINES ${BEV_ENGINES} bevatron_${name} PARENT_SCOPE)
endfunction()

set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  message(NOTICE "MPI: ${MPI_CXX_COMPILER}, standard ${MPI_CXX_VERSION}")
  bev_engine(mpi LINK MPI::MPI_CXX)
else()
  message(NOTICE "MPI: not built, mpicxx was not found (libopenmpi-dev)")
endif()

find_path(BEV_GLOO_INCLUDE gloo/rendezvous/context.h)
find_library(BEV_GLOO_LIBRARY gloo)
mark_as_advanced(BEV_GLOO_INCLUDE BEV_GLOO_LIBRARY)
if(BEV_GLOO_INCLUDE AND BEV_GLOO_LIBRARY)
  message(NOTICE "Gloo: ${BEV_GLOO_LIBRARY}")
  add_library(gloo_of_system INTERFACE)
  target_include_directories(gloo_of_system SYSTEM INTERFACE ${BEV_GLOO_INCLUDE})
  target_link_libraries(gloo_of_system INTERFACE ${BEV_GLOO_LIBRARY})
  bev_engine(gloo LINK gloo_of_system)
else()
  message(NOTICE "Gloo: not built, its headers or library were not found (libgloo-dev)")
endif()

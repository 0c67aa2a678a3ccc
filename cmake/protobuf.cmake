# Protobuf, of which one source file of ours knows. Debian's libsentencepiece holds an older version
# of it and shows its names to everybody: with libprotobuf-lite.so beside it one of the two calls the
# functions of the other and crashes. So the file and what it needs of libprotobuf-lite.a become one
# object in which Protobuf has other names.
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
if(NOT Protobuf_LITE_LIBRARY MATCHES "\\.a$" OR NOT EXISTS "${Protobuf_PROTOC_EXECUTABLE}")
  message(FATAL_ERROR "Protobuf: libprotobuf-lite.a or protoc was not found (libprotobuf-dev, protobuf-compiler)")
endif()

# bev_protobuf_object(target source proto): `source` of that target includes what protoc makes of
# `proto`.
function(bev_protobuf_object target source proto)
  cmake_path(GET proto STEM name)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  set(proto ${CMAKE_CURRENT_SOURCE_DIR}/${proto})
  cmake_path(GET proto PARENT_PATH folder)
  set(made ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(MAKE_DIRECTORY ${made})
  add_custom_command(OUTPUT ${made}/${name}.pb.cc ${made}/${name}.pb.h
    COMMAND protobuf::protoc --cpp_out=${made} --proto_path=${folder} ${proto}
    DEPENDS ${proto} VERBATIM)
  add_library(${name}_source OBJECT ${source} ${made}/${name}.pb.h)
  target_include_directories(${name}_source PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${name}_source SYSTEM PRIVATE ${made} ${Protobuf_INCLUDE_DIRS})
  target_link_libraries(${name}_source PRIVATE bev_flags)
  # Not ours, so not under our warnings.
  add_library(${name}_messages OBJECT ${made}/${name}.pb.cc)
  target_include_directories(${name}_messages PRIVATE ${made} ${Protobuf_INCLUDE_DIRS})
  add_custom_command(OUTPUT ${made}/${name}.o
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/rename-protobuf.sh ${CMAKE_LINKER} ${CMAKE_NM} ${CMAKE_OBJCOPY}
      ${made}/${name}.o $<TARGET_OBJECTS:${name}_source> $<TARGET_OBJECTS:${name}_messages>
      ${Protobuf_LITE_LIBRARY}
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/rename-protobuf.sh $<TARGET_OBJECTS:${name}_source>
      $<TARGET_OBJECTS:${name}_messages> ${Protobuf_LITE_LIBRARY}
    COMMAND_EXPAND_LISTS VERBATIM)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_ITEM sources ${source})
  set_property(TARGET ${target} PROPERTY SOURCES ${sources} ${made}/${name}.o)
  set_source_files_properties(${made}/${name}.o PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()

# bev_embed(target file constant): the target's sources can include <NAME.h>, with dots of the file's
# name as underscores, which has the file's text as a std::string_view of that name.
function(bev_embed target file constant)
  cmake_path(GET file FILENAME name)
  string(REPLACE "." "_" name ${name})
  set(made ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
  file(CONFIGURE OUTPUT ${made}/${name}.h @ONLY CONTENT
"#pragma once
#include <string_view>
namespace bev {
inline constexpr std::string_view @constant@ = R\"~embedded~(@text@)~embedded~\";
}
")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  target_include_directories(${target} SYSTEM PRIVATE ${made})
endfunction()

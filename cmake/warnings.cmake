# The flags of every target of the project.
add_library(bev_flags INTERFACE)
# g++ sees overlapping and overlong copies in std::string (GCC bug 105651) and uninitialised members in
# lists of structs where there are none; which, depends on its version and on the -O level.
target_compile_options(bev_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra>")
if(BEV_WERROR)
  target_compile_options(bev_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=maybe-uninitialized>
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror=all-warnings -Xcompiler=-Werror>")
endif()
if(BEV_SANITIZE)
  target_compile_options(bev_flags INTERFACE -fsanitize=${BEV_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(bev_flags INTERFACE -fsanitize=${BEV_SANITIZE})
endif()

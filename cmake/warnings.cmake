# The flags of every target of the project.
add_library(bev_flags INTERFACE)
# g++ 12 sees overlapping copies in std::string where there are none (GCC bug 105651).
target_compile_options(bev_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wno-restrict)
if(BEV_WERROR)
  target_compile_options(bev_flags INTERFACE -Werror)
endif()
if(BEV_SANITIZE)
  target_compile_options(bev_flags INTERFACE -fsanitize=${BEV_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(bev_flags INTERFACE -fsanitize=${BEV_SANITIZE})
endif()

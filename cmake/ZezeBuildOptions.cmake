# Flags of our own targets, kept in one private interface library so that they never reach users.
add_library(zeze_build_options INTERFACE)
target_compile_features(zeze_build_options INTERFACE cxx_std_20)
target_compile_options(zeze_build_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wundef
  $<$<BOOL:${ZEZE_WARNINGS_AS_ERRORS}>:-Werror>
  # Objects do not depend on the place of the clone, so ccache shares them between clones.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
  # clang only: the annotations of zeze/base/mutex.h. libstdc++ 12 uses functions that it deprecates.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)

if(ZEZE_SANITIZE)
  target_compile_options(zeze_build_options INTERFACE
    -fsanitize=${ZEZE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(zeze_build_options INTERFACE -fsanitize=${ZEZE_SANITIZE})
  # What sanitizers insert makes GCC 12 see uses that are not there; the release build warns.
  target_compile_options(zeze_build_options INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(ZEZE_SANITIZE MATCHES thread)
    # Asio fences with atomic_thread_fence, which tsan does not model; GCC warns about each.
    target_compile_definitions(zeze_build_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
    target_compile_options(zeze_build_options INTERFACE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()
if(ZEZE_BUILD_FUZZERS)
  target_compile_options(zeze_build_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
# Compile every public header on its own: target all_verify_interface_header_sets.
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL})

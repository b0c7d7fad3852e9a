# zeze_layer: a layer of the library, as the target zeze_NAME (alias zeze::NAME, package component
# NAME), with its tests and benchmarks.
#
#   zeze_layer(NAME
#     DEPS          layers it may include and link           (public)
#     LIBRARIES     third-party targets in public headers    (public)
#     PRIVATE_LIBRARIES  third-party targets in .cc files only
#     HEADERS       public headers: installed, checked to compile alone
#     SOURCES       everything else, private headers included
#     TESTS         *_test.cc, one binary for the layer
#     TEST_LIBRARIES  targets of the tests only
#     BENCHMARKS    *_benchmark.cc, one binary for the layer
#     FUZZERS       *_fuzz.cc, one binary each, built only by the preset "fuzz")
function(zeze_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" ""
    "DEPS;LIBRARIES;PRIVATE_LIBRARIES;HEADERS;SOURCES;TESTS;TEST_LIBRARIES;BENCHMARKS;FUZZERS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "zeze_layer(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_DEPS PREPEND zeze::)

  add_library(zeze_${name} STATIC ${arg_SOURCES})
  add_library(zeze::${name} ALIAS zeze_${name})
  target_sources(zeze_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  target_compile_features(zeze_${name} PUBLIC cxx_std_20)
  target_link_libraries(zeze_${name}
    PUBLIC ${arg_DEPS} ${arg_LIBRARIES}
    PRIVATE ${arg_PRIVATE_LIBRARIES} $<BUILD_INTERFACE:zeze_build_options>)
  set_target_properties(zeze_${name} PROPERTIES EXPORT_NAME ${name})
  zeze_install_component(${name})
  get_property(server_layers GLOBAL PROPERTY ZEZE_SERVER_LAYERS)
  foreach(dep IN LISTS arg_DEPS ITEMS zeze::${name})
    if(dep IN_LIST server_layers OR dep STREQUAL zeze::app)
      set_property(GLOBAL APPEND PROPERTY ZEZE_SERVER_LAYERS zeze::${name})
      # The tests of a layer of servers choose their database by its address.
      list(APPEND arg_TEST_LIBRARIES zeze::storage_drivers)
      break()
    endif()
  endforeach()

  if(ZEZE_BUILD_TESTS)
    # Every symbol of the layer must be found in the layers it names: a hidden use of an upper
    # layer fails to link here.
    file(GENERATE OUTPUT link_test.cc CONTENT "int main() {}\n")
    add_executable(zeze_${name}_link_test ${CMAKE_CURRENT_BINARY_DIR}/link_test.cc)
    target_link_libraries(zeze_${name}_link_test PRIVATE
      $<LINK_LIBRARY:WHOLE_ARCHIVE,zeze_${name}> zeze_build_options)
    if(arg_TESTS)
      zeze_test(zeze_${name}_test ${arg_TESTS} LIBRARIES zeze::${name} ${arg_TEST_LIBRARIES})
    endif()
  endif()
  if(ZEZE_BUILD_BENCHMARKS AND arg_BENCHMARKS)
    add_executable(zeze_${name}_benchmark ${arg_BENCHMARKS})
    target_link_libraries(zeze_${name}_benchmark PRIVATE
      zeze::${name} zeze_build_options benchmark::benchmark_main)
  endif()
  if(ZEZE_BUILD_FUZZERS)
    foreach(source IN LISTS arg_FUZZERS)
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      target_link_libraries(${fuzzer} PRIVATE zeze::${name} zeze_build_options)
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      set_property(GLOBAL APPEND PROPERTY ZEZE_FUZZERS ${fuzzer})
    endforeach()
  endif()
endfunction()

# zeze_storage_driver(NAME): the layer storage_NAME opens databases (zeze/storage/storage_driver.h).
# Whatever links it, directly or through another library, takes the object file that registers the
# driver. zeze::storage_drivers is all of them, for programs that take any address.
function(zeze_storage_driver name)
  target_link_options(zeze_storage_${name} INTERFACE
    LINKER:--undefined=zeze_storage_driver_${name})
  if(NOT TARGET zeze_storage_drivers)
    add_library(zeze_storage_drivers INTERFACE)
    add_library(zeze::storage_drivers ALIAS zeze_storage_drivers)
    set_target_properties(zeze_storage_drivers PROPERTIES EXPORT_NAME storage_drivers)
    install(TARGETS zeze_storage_drivers EXPORT zezeTargets)
    set_property(GLOBAL APPEND PROPERTY ZEZE_COMPONENTS storage_drivers)
  endif()
  target_link_libraries(zeze_storage_drivers INTERFACE zeze::storage_${name})
endfunction()

# zeze_testing_kit: what a layer offers to its users' own tests, as the target zeze_NAME_testing
# (alias zeze::NAME_testing, package component NAME_testing). The headers need GoogleTest, which
# their user links; nothing of a kit is part of the library.
#
#   zeze_testing_kit(provider HEADERS testing/fake_linkd.h [SOURCES ...] [DEPS ...])
function(zeze_testing_kit layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;HEADERS;SOURCES")
  list(TRANSFORM arg_DEPS PREPEND zeze::)
  set(kit zeze_${layer}_testing)
  if(arg_SOURCES)
    add_library(${kit} STATIC ${arg_SOURCES})
    target_link_libraries(${kit}
      PUBLIC zeze::${layer} ${arg_DEPS}
      PRIVATE $<BUILD_INTERFACE:zeze_build_options>)
    target_sources(${kit} PUBLIC
      FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  else()
    add_library(${kit} INTERFACE)
    target_link_libraries(${kit} INTERFACE zeze::${layer} ${arg_DEPS})
    target_sources(${kit} INTERFACE
      FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  endif()
  add_library(zeze::${layer}_testing ALIAS ${kit})
  set_target_properties(${kit} PROPERTIES EXPORT_NAME ${layer}_testing)
  zeze_install_component(${layer}_testing)
endfunction()

function(zeze_install_component name)
  install(TARGETS zeze_${name} EXPORT zezeTargets FILE_SET HEADERS)
  set_property(GLOBAL APPEND PROPERTY ZEZE_COMPONENTS ${name})
endfunction()

# zeze_install_generated(messages|modules): the headers of a layer that is generated from
# zeze/messages/solution.xml. They are generated once more: those of the build include files by which
# Ninja notices changes (see zeze_generate), and those have no place in a prefix.
function(zeze_install_generated part)
  set(solution ${PROJECT_SOURCE_DIR}/zeze/messages/solution.xml)
  set(installed ${CMAKE_CURRENT_BINARY_DIR}/installed)
  set(stamp ${installed}/generated.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND zeze_gen_tool gen ${solution} --out ${installed} --only ${part} --quiet
      --depfile ${stamp}.d --stamp ${stamp}
    DEPENDS ${solution} zeze_gen_tool
    DEPFILE ${stamp}.d
    COMMENT "zeze gen ${part}, to be installed"
    VERBATIM)
  add_custom_target(zeze_installed_${part} ALL DEPENDS ${stamp})
  install(DIRECTORY ${installed}/Zeze
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
endfunction()

# zeze_test(NAME sources... LIBRARIES targets... [LABEL unit|integration|slow] [TIMEOUT seconds]
#           [ONE_PROCESS] [WAITS]):
# a GoogleTest binary whose cases ctest runs one by one; with ONE_PROCESS it runs them all in one
# process, because they share something that takes long to start. WAITS: its cases mostly wait for
# leases, time-outs and databases, so more of them may run beside each other (see ./dev test).
function(zeze_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_PROCESS;WAITS" "LABEL;TIMEOUT" "LIBRARIES")
  set(processors 2)
  if(arg_WAITS)
    set(processors 1)
  endif()
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE
    ${arg_LIBRARIES} zeze_build_options GTest::gmock GTest::gtest_main)
  string(REGEX REPLACE "^zeze_|_test$" "" prefix ${name})
  if(arg_ONE_PROCESS)
    add_test(NAME ${prefix} COMMAND ${name})
    set_tests_properties(${prefix} PROPERTIES
      TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABEL} PROCESSORS ${processors})
    return()
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${prefix}/ DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABEL} PROCESSORS ${processors})
endfunction()

include(GoogleTest)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# So that users write: find_package(zeze 0.1 REQUIRED COMPONENTS app) and link zeze::app.
# zeze::server is every layer that stands on app, with all drivers of databases, for programs that do
# not want to choose.
function(zeze_install_package)
  get_property(server_layers GLOBAL PROPERTY ZEZE_SERVER_LAYERS)
  add_library(zeze_server INTERFACE)
  add_library(zeze::server ALIAS zeze_server)
  target_link_libraries(zeze_server INTERFACE ${server_layers} zeze::storage_drivers)
  set_target_properties(zeze_server PROPERTIES EXPORT_NAME server)
  install(TARGETS zeze_server EXPORT zezeTargets)
  get_property(zeze_components GLOBAL PROPERTY ZEZE_COMPONENTS)
  list(APPEND zeze_components server)

  set(dir ${CMAKE_INSTALL_LIBDIR}/cmake/zeze)
  install(EXPORT zezeTargets NAMESPACE zeze:: DESTINATION ${dir})
  configure_package_config_file(cmake/zezeConfig.cmake.in zezeConfig.cmake INSTALL_DESTINATION ${dir})
  write_basic_package_version_file(zezeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES
    ${CMAKE_CURRENT_BINARY_DIR}/zezeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/zezeConfigVersion.cmake
    cmake/ZezeGenerate.cmake cmake/ZezePackages.cmake
    DESTINATION ${dir})
endfunction()

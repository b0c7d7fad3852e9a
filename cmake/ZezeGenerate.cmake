# zeze_generate: C++ from a schema, as part of the build.
#
#   zeze_generate(TARGET shop_schema SOLUTION solution.xml)
#   add_executable(shop main.cc ModuleOrder.cc)
#   target_link_libraries(shop PRIVATE shop_schema)
#
#   zeze_generate(
#     TARGET name        a library to make; or a target that exists, which then gets the code
#     SOLUTION files     schemas; what they import or include is found and followed
#     [PROJECT name]     which project; default: the only one with platform="cxx", else everything
#     [ONLY messages|modules]  beans and protocols, for programs that are no servers: needs
#                    zeze::bean and zeze::net; or the base classes of modules, for a target that
#                    links one with the messages. Default: both, which needs zeze::app
#     [SHARDS count]     files to compile in parallel, 1 by default: more for a large schema
#     [OUT directory]    default: zeze_gen/<target> in the build directory
#     [STRICT]           warnings of the generator are errors
#     [FROZEN]           the lock file must be there and fit
#     [OPTIONS ...])     further options of `zeze gen`
#
# The code goes to the build tree and is included as "Solution/Module.h". It is generated again when
# a schema or the generator changes, and files whose bytes stay the same are not touched, so only
# what really changed is compiled again.
function(zeze_generate)
  cmake_parse_arguments(PARSE_ARGV 0 arg "STRICT;FROZEN" "TARGET;PROJECT;ONLY;SHARDS;OUT"
    "SOLUTION;OPTIONS")
  if(NOT arg_TARGET OR NOT arg_SOLUTION)
    message(FATAL_ERROR "zeze_generate needs TARGET and SOLUTION, for example "
      "zeze_generate(TARGET shop_schema SOLUTION solution.xml)")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "zeze_generate(TARGET ${arg_TARGET}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(layers app)
  if(arg_ONLY STREQUAL "messages")
    set(layers bean net)
  elseif(arg_ONLY AND NOT arg_ONLY STREQUAL "modules")
    message(FATAL_ERROR "zeze_generate(TARGET ${arg_TARGET}): ONLY is messages or modules")
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  if(NOT arg_OUT)
    set(arg_OUT ${CMAKE_CURRENT_BINARY_DIR}/zeze_gen/${arg_TARGET})
  endif()

  # In the tree of zeze itself the tool is built first; users have it installed.
  if(TARGET zeze_gen_tool)
    set(tool zeze_gen_tool)
  else()
    set(tool zeze::zeze_cli)
    foreach(layer IN LISTS layers)
      if(NOT layer IN_LIST zeze_LAYERS)
        message(FATAL_ERROR "zeze_generate(TARGET ${arg_TARGET}) needs ${layer}: add it to the "
          "COMPONENTS of find_package(zeze), or say ONLY messages if the program is no server")
      endif()
    endforeach()
  endif()

  set(solutions)
  foreach(solution IN LISTS arg_SOLUTION)
    cmake_path(ABSOLUTE_PATH solution NORMALIZE)
    get_source_file_property(made_by_the_build ${solution} GENERATED)
    if(NOT EXISTS ${solution} AND NOT made_by_the_build)
      message(FATAL_ERROR "zeze_generate(TARGET ${arg_TARGET}): there is no ${solution}")
    endif()
    list(APPEND solutions ${solution})
  endforeach()
  set(tracks_max 15)
  set(options --out ${arg_OUT} --shards ${arg_SHARDS} --tracks 16 --quiet)
  if(arg_PROJECT)
    list(APPEND options --project ${arg_PROJECT})
  endif()
  if(arg_ONLY)
    list(APPEND options --only ${arg_ONLY})
  endif()
  if(arg_STRICT)
    list(APPEND options --strict)
  endif()
  if(arg_FROZEN)
    list(APPEND options --frozen)
  endif()
  list(APPEND options ${arg_OPTIONS})

  # The names of outputs must be known before the schema is read: a fixed number of shards to
  # compile, each of which includes its share of what was generated, and of tracks, which change
  # when the headers do that include them. Without the latter Ninja would notice changed headers
  # only in the next build.
  math(EXPR last "${arg_SHARDS} - 1")
  set(shards)
  foreach(index RANGE ${last})
    list(APPEND shards ${arg_OUT}/shard_${index}.cc)
  endforeach()
  set(tracks)
  foreach(index RANGE ${tracks_max})
    list(APPEND tracks ${arg_OUT}/track_${index}.h)
  endforeach()
  set(stamp ${arg_OUT}/generated.stamp)
  add_custom_command(
    OUTPUT ${stamp} ${shards} ${tracks}
    COMMAND $<TARGET_FILE:${tool}> gen ${solutions} ${options}
      --depfile ${stamp}.d --stamp ${stamp}
    DEPENDS ${solutions} ${tool}
    DEPFILE ${stamp}.d
    COMMENT "zeze gen ${arg_TARGET}"
    VERBATIM)
  # A target that links nothing, for otherwise the code would only be generated when every library
  # is built that the user of the code links.
  cmake_path(RELATIVE_PATH arg_OUT BASE_DIRECTORY ${PROJECT_BINARY_DIR} OUTPUT_VARIABLE generate)
  string(MAKE_C_IDENTIFIER generate_${generate} generate)
  add_custom_target(${generate} DEPENDS ${stamp} ${shards} ${tracks})

  if(NOT TARGET ${arg_TARGET})
    add_library(${arg_TARGET} STATIC)
  endif()
  get_target_property(type ${arg_TARGET} TYPE)
  set(scope PUBLIC)
  if(type STREQUAL EXECUTABLE)
    set(scope PRIVATE)
  endif()
  target_sources(${arg_TARGET} PRIVATE ${shards} ${tracks} ${stamp})
  add_dependencies(${arg_TARGET} ${generate})
  target_include_directories(${arg_TARGET} ${scope} $<BUILD_INTERFACE:${arg_OUT}>)
  list(TRANSFORM layers PREPEND zeze::)
  target_link_libraries(${arg_TARGET} ${scope} ${layers})
  # In the tree of zeze itself: its warnings and sanitizers.
  if(TARGET zeze_build_options)
    target_link_libraries(${arg_TARGET} PRIVATE $<BUILD_INTERFACE:zeze_build_options>)
  endif()
endfunction()

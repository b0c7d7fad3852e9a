# Builds a copy of the npm package and runs its tests. Packages are installed again only when the
# lock file has changed, so that later runs need no network.
foreach(name src test dist build)
  file(REMOVE_RECURSE ${package}/${name})
endforeach()
foreach(name .npmrc package.json package-lock.json tsconfig.json tsconfig.test.json src test)
  file(COPY ${source}/${name} DESTINATION ${package})
endforeach()

set(installed ${package}/node_modules/.installed-lock.json)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E compare_files ${package}/package-lock.json ${installed}
  RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
if(differs)
  execute_process(COMMAND ${npm} ci --ignore-scripts --prefer-offline
    WORKING_DIRECTORY ${package} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "npm ci failed: the packages of clients/typescript/package-lock.json are needed")
  endif()
  configure_file(${package}/package-lock.json ${installed} COPYONLY)
endif()

set(ENV{ZEZE_BEAN_ECHO} ${bean_echo})
set(ENV{ZEZE_CORE_VECTORS} ${core_vectors})
execute_process(COMMAND ${npm} test WORKING_DIRECTORY ${package} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the tests of clients/typescript failed")
endif()

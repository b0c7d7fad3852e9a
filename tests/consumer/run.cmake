# See CMakeLists.txt.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: exit code ${code}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD_DIRECTORY} --prefix ${SCRATCH}/zeze)
execute_process(COMMAND ${SCRATCH}/zeze/bin/zeze new mygame
  WORKING_DIRECTORY ${SCRATCH} RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "zeze new mygame: exit code ${code}")
endif()
run(${CMAKE_COMMAND} -S ${SCRATCH}/mygame -B ${SCRATCH}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${SCRATCH}/zeze -DCMAKE_CXX_COMPILER=${CXX}
  -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
file(GLOB program ${SCRATCH}/build/mygame)
if(NOT program)
  message(FATAL_ERROR "the new project made no program called mygame")
endif()

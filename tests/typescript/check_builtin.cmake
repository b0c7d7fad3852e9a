# Generates the messages of the framework again and compares them with those in the package.
file(REMOVE_RECURSE ${scratch})
execute_process(
  COMMAND ${zeze} gen ${schema} --project Client --runtime ../runtime.js --out ${scratch} --quiet
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "zeze gen ${schema} failed")
endif()
file(GLOB_RECURSE made RELATIVE ${scratch} ${scratch}/*.ts)
file(GLOB_RECURSE there RELATIVE ${expected} ${expected}/*.ts)
if(NOT made STREQUAL there)
  message(FATAL_ERROR "${expected} has ${there}, the generator makes ${made}")
endif()
foreach(name IN LISTS made)
  execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${scratch}/${name} ${expected}/${name}
    RESULT_VARIABLE differs)
  if(differs)
    message(FATAL_ERROR "${expected}/${name} is out of date: run zeze gen "
      "zeze/messages/solution.xml --project Client --runtime ../runtime.js "
      "--out clients/typescript/src/builtin")
  endif()
endforeach()

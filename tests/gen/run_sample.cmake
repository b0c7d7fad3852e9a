# Runs the program of `zeze new` twice: the second run must remember the first.
file(REMOVE_RECURSE ${sample}/db)
foreach(visit 1 2)
  execute_process(COMMAND ${program} ann WORKING_DIRECTORY ${sample}
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT output MATCHES "visit number ${visit}")
    message(FATAL_ERROR "visit ${visit} ended with ${code}: ${output}${errors}")
  endif()
endforeach()

execute_process(
  COMMAND ${gdb} -nx -batch -ex "set print elements 0" -ex "set print repeats 0" -ex "source ${printers}"
    -ex "break Stop" -ex run
    -ex "print role.names" -ex "print role.large" -ex "print role.ranking" -ex "print role.friends"
    -ex "print role.weapon" -ex "print role.nothing" -ex "print role.empty" -ex "print role.token"
    -ex "print role.many" -ex "print role.bag" ${program}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "gdb does not show:\n  ${text}\nbut (exit code ${code}):\n${output}")
  endif()
endfunction()
expect([[= zeze::List of 2 = {"ann", "bob"}]])
expect([[= zeze::List of 1 = {{first = 77]])
expect([[= zeze::SortedMap of 2 = {[900] = "bob", [1200] = "ann"}]])
expect([[= zeze::Set of 1 = {12}]])
expect([[Shield = {bean = {weight = 5}}]])
expect([[= zeze::Dynamic, empty]])
expect([[= zeze::Map of 0]])
expect([[= "secret"]])
expect([[= zeze::List of 3000 = {0, 1, 2,]])
expect([[2997, 2998, 2999}]])
expect([[= zeze::Map of 100 = {]])
foreach(key RANGE 99)
  if(key GREATER 0)
    expect("[${key}] = ${key}0")
  endif()
endforeach()

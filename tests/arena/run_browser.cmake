# Builds the page, starts the arena with a few bots, and lets a browser play.
file(COPY ${source}/tests/arena/package.json ${source}/tests/arena/package-lock.json
  ${source}/tests/arena/.npmrc ${source}/tests/arena/browser.mjs DESTINATION ${work}/browser)
set(installed ${work}/browser/node_modules/.installed-lock.json)
execute_process(
  COMMAND ${CMAKE_COMMAND} -E compare_files ${work}/browser/package-lock.json ${installed}
  RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
if(differs)
  execute_process(COMMAND ${npm} ci --ignore-scripts --prefer-offline --no-audit --no-fund
    WORKING_DIRECTORY ${work}/browser RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "npm ci failed: the packages of tests/arena/package-lock.json are needed")
  endif()
  configure_file(${work}/browser/package-lock.json ${installed} COPYONLY)
endif()
execute_process(COMMAND ${source}/examples/arena/page/build.sh ${work}/page ${zeze}
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the page could not be built")
endif()
set(ENV{ZEZE_CHROMIUM} ${chromium})
execute_process(
  COMMAND python3 ${source}/examples/arena/play.py --build ${binary} --page ${work}/page --check
    --no-kill --bots 60 --seconds 120 --visitor "${node} ${work}/browser/browser.mjs"
  RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the page could not be played")
endif()

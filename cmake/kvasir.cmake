# Targets of this project are made only by these functions, so that every one has the same warnings,
# hardening and include root.

add_library(kvasir_flags INTERFACE)
target_include_directories(kvasir_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(kvasir_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wvla -Werror
  -ffp-contract=off          # a fused multiply-add is written as one: numbers must not depend on the compiler
  -fno-strict-aliasing -fstack-protector-strong -fno-omit-frame-pointer)
target_compile_definitions(kvasir_flags INTERFACE _GLIBCXX_ASSERTIONS)
target_link_options(kvasir_flags INTERFACE -Wl,-z,relro,-z,now)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT KVASIR_SANITIZE)
  target_compile_options(kvasir_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
if(KVASIR_SANITIZE)
  # GCC 12 sees uninitialised values in instrumented code that has none.
  target_compile_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE} -fno-sanitize-recover=all
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(kvasir_flags INTERFACE -fsanitize=${KVASIR_SANITIZE})
endif()
if(KVASIR_FUZZ)  # libFuzzer's coverage in all own code; its main only in the targets (kvasir_fuzz)
  target_compile_options(kvasir_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kvasir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Most of a cold build is the parsing of headers: the presets compile eight files of a target at a time. Off for a plain
# cmake, which proves that each file includes what it needs. Names in unnamed namespaces are unique within a target.
option(KVASIR_UNITY "compile several files of a target together" OFF)
set(CMAKE_UNITY_BUILD ${KVASIR_UNITY})

# kvasir_module(NAME SOURCES a.cc … [DEPS target …]): the library of one module (one row of the include table).
function(kvasir_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kvasir_flags ${ARG_DEPS})
endfunction()

# kvasir_program(NAME SOURCES … DEPS …): an executable in build/<preset>/bin.
function(kvasir_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kvasir_flags ${ARG_DEPS})
endfunction()

# kvasir_test(NAME LABEL l SOURCES … DEPS … [ARGS …] [TIMEOUT s]): one GoogleTest binary = one ctest entry with one label
# (unit contract golden sim fuzz emu gpu slow tidy; see docs/development.md). Tests run in the repository root.
function(kvasir_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS;ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE -O1)  # the modules are to be fast, not their tests
  target_link_libraries(${name} PRIVATE kvasir_flags ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# kvasir_python_test(NAME LABEL l SCRIPT file [ARGS …] [TIMEOUT s]): a Python script whose exit status decides. It runs in
# the repository root with the packages of tests/requirements.txt (.venv, made by ./dev test).
function(kvasir_python_test name)
  cmake_parse_arguments(ARG "" "LABEL;SCRIPT;TIMEOUT" "ARGS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_test(NAME ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SCRIPT} ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# kvasir_fuzz(NAME SOURCES … DEPS … CORPUS dir): a libFuzzer target where KVASIR_FUZZ is on; everywhere else a test
# (label fuzz) that replays the committed corpus through the same entry point.
file(WRITE ${CMAKE_BINARY_DIR}/fuzz_targets.txt "")
function(kvasir_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  if(KVASIR_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE kvasir_flags ${ARG_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    file(APPEND ${CMAKE_BINARY_DIR}/fuzz_targets.txt "${name} ${ARG_CORPUS}\n")  # read by ./dev fuzz
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    target_link_libraries(${name} PRIVATE kvasir_flags ${ARG_DEPS})
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()

# find_package(AnsorDeploy CONFIG): tuned models as libraries of a CMake build.
#
#   ansor_deploy_model(
#     NAME net               # target to link with; also of net.so, net.h and net_load()
#     MODEL net.onnx
#     LOCK net.lock          # records of the schedules, in version control
#     [TARGET rpi3]          # a name, or a descriptor's path
#     [DEVICES pi ...]       # to tune on, instead of all that were added for the target
#     [RULES mine.py ...]    # derivation rules beyond the shipped ones
#     [OPTIONS ...]          # for `ansor-deploy build` and `tune`: --input-shape ids=1,128
#     [TUNE ...])            # for `ansor-deploy tune` alone: --time 1h
#
# A build takes every schedule from the lock and measures nothing. Targets `tune_net` and, of all
# models, `tune` write the lock; no other target depends on them. `net` has two properties for
# install(FILES) and for tests: ANSOR_DEPLOY_LIBRARY, the path of net.so, and ANSOR_DEPLOY_FILES,
# what a program needs of it on the machine where it runs.
#
# Read from the cache: AnsorDeploy_EXECUTABLE, the tool; AnsorDeploy_RUNTIME_DIR, the folder with
# the packages tvm and tvm_ffi of the machine that programs run on.

cmake_policy(PUSH)
cmake_policy(VERSION 3.20...3.30)

# The environment that this file came with need not be active: PREFIX/lib/pythonX.Y/site-packages.
find_program(AnsorDeploy_EXECUTABLE ansor-deploy
  HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../../../../bin"
  DOC "The command-line tool ansor-deploy"
  NO_CMAKE_FIND_ROOT_PATH)

set(AnsorDeploy_RUNTIME_DIR "" CACHE PATH "The folder with the Python packages tvm and tvm_ffi")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(AnsorDeploy REQUIRED_VARS AnsorDeploy_EXECUTABLE)

function(ansor_deploy_model)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;MODEL;LOCK;TARGET" "DEVICES;RULES;OPTIONS;TUNE")
  foreach(needed NAME MODEL LOCK)
    if(NOT arg_${needed})
      message(FATAL_ERROR "ansor_deploy_model: ${needed} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ansor_deploy_model: unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  _ansor_deploy_target(arg_TARGET)
  foreach(path MODEL LOCK)
    get_filename_component(arg_${path} "${arg_${path}}" ABSOLUTE)
  endforeach()
  set(words ${arg_OPTIONS})
  if(arg_TARGET)
    list(APPEND words --target "${arg_TARGET}")
  endif()
  foreach(rule IN LISTS arg_RULES)
    get_filename_component(rule "${rule}" ABSOLUTE)
    list(APPEND words --rules "${rule}")
  endforeach()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/ansor_deploy")
  set(library "${folder}/${arg_NAME}.so")
  _ansor_deploy_build("${arg_NAME}" "${arg_MODEL}" "${arg_LOCK}" "${library}" "${words}")
  list(TRANSFORM arg_DEVICES PREPEND "--device=")
  _ansor_deploy_tune("${arg_NAME}" "${arg_MODEL}" "${arg_LOCK}"
    "${words};${arg_DEVICES};${arg_TUNE}")

  _ansor_deploy_runtime()
  add_library(${arg_NAME} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${arg_NAME} INTERFACE "${folder}")
  target_link_libraries(${arg_NAME} INTERFACE ansor_deploy_runtime)
  add_dependencies(${arg_NAME} ${arg_NAME}_model)
  set_target_properties(${arg_NAME} PROPERTIES
    ANSOR_DEPLOY_LIBRARY "${library}"
    ANSOR_DEPLOY_FILES "${library};${folder}/${arg_NAME}.json")
endfunction()

# The descriptor: what was asked for; else, when cross-compiling, that of the processor; else none,
# which is the project's or this machine's.
function(_ansor_deploy_target variable)
  set(target "${${variable}}")
  if(target MATCHES "\\.toml$")
    get_filename_component(target "${target}" ABSOLUTE)
  elseif(NOT target AND CMAKE_CROSSCOMPILING)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
      set(target cortex-a53)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
      set(target intel-cpu-avx2)
    else()
      message(FATAL_ERROR "ansor_deploy_model: no descriptor is known for the processor "
        "'${CMAKE_SYSTEM_PROCESSOR}': give one with TARGET")
    endif()
  endif()
  set(${variable} "${target}" PARENT_SCOPE)
endfunction()

# The library and what lies beside it. The lock is known from the depfile alone: where it is
# missing, the tool says better than the build system what makes it.
function(_ansor_deploy_build name model lock library words)
  get_filename_component(folder "${library}" DIRECTORY)
  set(beside "${folder}/${name}.h" "${folder}/${name}.json" "${folder}/${name}.intoto.json")
  set(read "${folder}/${name}.d")
  set(depfile "${read}")
  set(outputs OUTPUT "${library}" ${beside})
  set(stamp "")
  if(CMAKE_GENERATOR MATCHES "Makefiles")
    # Make compares times, and what is up to date keeps its own: a stamp takes the new one.
    set(depfile "${library}.stamp.d")
    set(outputs OUTPUT "${library}.stamp" BYPRODUCTS "${library}" ${beside})
    set(stamp COMMAND "${CMAKE_COMMAND}" "-DREAD=${read}" "-DDEPFILE=${depfile}"
      "-DSTAMP=${library}.stamp" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/AnsorDeployStamp.cmake")
  endif()
  set(jobs "")
  if(NOT CMAKE_VERSION VERSION_LESS 3.28)
    set(jobs JOB_SERVER_AWARE TRUE)
  endif()
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(
    ${outputs}
    COMMAND "${CMAKE_COMMAND}" -E env
      "ANSOR_DEPLOY_TUNE=cmake --build ${CMAKE_BINARY_DIR} --target tune_${name}"
      "${AnsorDeploy_EXECUTABLE}" build "${model}" -o "${library}" --lock "${lock}" --frozen
      --header --depfile "${read}" ${words}
    ${stamp}
    DEPENDS "${model}"
    DEPFILE "${depfile}"
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Building the model ${name}"
    ${jobs}
    VERBATIM)
  list(GET outputs 1 made)
  add_custom_target(${name}_model ALL DEPENDS "${made}")
endfunction()

function(_ansor_deploy_tune name model lock words)
  add_custom_target(tune_${name}
    COMMAND "${AnsorDeploy_EXECUTABLE}" tune "${model}" --lock "${lock}" ${words}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    COMMENT "Tuning the model ${name}"
    USES_TERMINAL
    VERBATIM)
  if(NOT TARGET tune)
    add_custom_target(tune)
  endif()
  add_dependencies(tune tune_${name})
endfunction()

# The C API, compiled once into a static library, and the libraries that it calls.
function(_ansor_deploy_runtime)
  if(TARGET ansor_deploy_runtime)
    return()
  endif()
  get_filename_component(c "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../c" ABSOLUTE)
  add_library(ansor_deploy_runtime STATIC EXCLUDE_FROM_ALL "${c}/ansor_deploy.c")
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages)
    set_source_files_properties("${c}/ansor_deploy.c" PROPERTIES LANGUAGE CXX)
  endif()
  set_target_properties(ansor_deploy_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)

  set(site "${AnsorDeploy_RUNTIME_DIR}")
  if(NOT site)
    _ansor_deploy_site(site)
    if(CMAKE_CROSSCOMPILING)  # the headers there serve every machine, the libraries this one
      message(STATUS "AnsorDeploy_RUNTIME_DIR is not set: there is no TVM to link programs with")
    endif()
  endif()
  target_include_directories(ansor_deploy_runtime
    PUBLIC "${c}"
    PRIVATE "${site}/tvm_ffi/include")
  if(AnsorDeploy_RUNTIME_DIR OR NOT CMAKE_CROSSCOMPILING)
    target_link_libraries(ansor_deploy_runtime
      PUBLIC "${site}/tvm/lib/libtvm_runtime.so" "${site}/tvm_ffi/lib/libtvm_ffi.so")
  endif()
endfunction()

# The packages of this machine: beside this one, where pip put it, or as the tool says.
function(_ansor_deploy_site variable)
  get_filename_component(site "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../.." ABSOLUTE)
  if(NOT EXISTS "${site}/tvm_ffi/include")
    execute_process(COMMAND "${AnsorDeploy_EXECUTABLE}" hooks runtime OUTPUT_VARIABLE site
      OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(${variable} "${site}" PARENT_SCOPE)
endfunction()

cmake_policy(POP)

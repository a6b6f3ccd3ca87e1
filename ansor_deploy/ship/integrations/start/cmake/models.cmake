# Models as libraries, for a CMakeLists.txt to include; `ansor-deploy init` wrote it, and changes it
# no more. `cmake --build build --target tune` looks for faster schedules and writes them to
# records.lock, which belongs into version control, as this file does.
if(NOT AnsorDeploy_DIR)
  execute_process(COMMAND ansor-deploy hooks cmake OUTPUT_VARIABLE AnsorDeploy_DIR
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(AnsorDeploy 0.2 CONFIG REQUIRED)

@MODELS@

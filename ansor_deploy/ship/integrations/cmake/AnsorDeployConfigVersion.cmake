# The version of the tool. Before 1.0, another minor version is another contract.
set(PACKAGE_VERSION "0.2.0")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" _AnsorDeploy_series "${PACKAGE_VERSION}")
set(_AnsorDeploy_asked "${PACKAGE_FIND_VERSION_MAJOR}.${PACKAGE_FIND_VERSION_MINOR}")
if(_AnsorDeploy_asked VERSION_EQUAL _AnsorDeploy_series
    AND NOT PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()

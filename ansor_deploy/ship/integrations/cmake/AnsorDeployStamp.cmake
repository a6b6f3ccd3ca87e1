# The last step of a model's build under make, which compares times. STAMP, NAME.so.stamp, is now
# newer than all that was read. READ, the tool's depfile, names NAME.so: DEPFILE names the stamp,
# and the outputs as prerequisites, so that all are made again where one was deleted.
file(READ "${READ}" text)
string(FIND "${text}" ": " end)
string(SUBSTRING "${text}" 0 ${end} library)  # escaped, as depfiles have it
math(EXPR end "${end} + 1")
string(SUBSTRING "${text}" ${end} -1 inputs)
string(REGEX REPLACE "\\.so$" "" name "${library}")
set(outputs "${library} ${name}.h ${name}.json ${name}.intoto.json")
file(WRITE "${DEPFILE}" "${library}.stamp: ${outputs}${inputs}")
file(TOUCH "${STAMP}")

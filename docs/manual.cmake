# The manual page: what the tables of the program say stands in the place of @GENERATED@.
# cmake -D PROGRAM=… -D SCDOC=… -D VERSION=… -D SOURCE=….scd -D OUT=….1 -P manual.cmake
cmake_minimum_required(VERSION 3.20)
execute_process(COMMAND "${PROGRAM}" _manual OUTPUT_VARIABLE generated COMMAND_ERROR_IS_FATAL ANY)
file(READ "${SOURCE}" text)
string(STRIP "${generated}" generated)
string(REPLACE "@GENERATED@" "${generated}" text "${text}")
string(REPLACE "@VERSION@" "${VERSION}" text "${text}")
file(WRITE "${OUT}.scd" "${text}")
execute_process(COMMAND "${SCDOC}" INPUT_FILE "${OUT}.scd" OUTPUT_FILE "${OUT}.new" RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "scdoc does not take ${OUT}.scd")
endif()
file(RENAME "${OUT}.new" "${OUT}")

# find_package(qxc): models of ONNX or .qir become libraries.
#
#   qxc_compile_model(TARGET MODEL [CALIB DATA...] [PREFIX NAME] [WEIGHTS_FILE] [OPTIONS OPTION...])
#     makes the static library TARGET with the header TARGET.h and the function PREFIX_run (PREFIX is TARGET where not given).
#     CALIB: data to quantize a float model with. WEIGHTS_FILE: weights as a binary, not as numbers in the C.
#     OPTIONS: more options of qxc, such as -integer-only.
#   qxc_generate_model(NAME MODEL SOURCES VARIABLE [DIRECTORY DIR] ...the same...)
#     makes the sources alone and sets VARIABLE to what is to be compiled; the header is in DIR
#     (default: NAME.qxc in the build folder). For build systems that have libraries of their own.
#
# Sets QXC_EXECUTABLE, which may be given instead. Files are relative to the calling CMakeLists.txt.
# Projects without C get a compiler for it here: find_package comes after project() and stands, as
# CMake asks of enable_language, in a folder above those that compile models.
get_filename_component(_qxc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_program(QXC_EXECUTABLE qxc HINTS "${_qxc_prefix}/bin" NO_CMAKE_FIND_ROOT_PATH)
if(NOT QXC_EXECUTABLE)
  set(qxc_FOUND FALSE)
  set(qxc_NOT_FOUND_MESSAGE "there is no program qxc in ${_qxc_prefix}/bin: set QXC_EXECUTABLE")
  return()
endif()
if(NOT TARGET qxc::qxc)
  add_executable(qxc::qxc IMPORTED GLOBAL)
  set_target_properties(qxc::qxc PROPERTIES IMPORTED_LOCATION "${QXC_EXECUTABLE}")
endif()

# What qxc writes is C, whatever the project is.
get_property(_qxc_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "C" IN_LIST _qxc_languages)
  enable_language(C)
endif()

# Compilers without C23's #embed get the weights from an object file.
function(_qxc_weights_object name prefix dir result)
  file(CONFIGURE OUTPUT "${dir}/${name}.weights.S" @ONLY NEWLINE_STYLE UNIX CONTENT
"    .section .rodata
    .global @prefix@_weights
    .balign 16
@prefix@_weights:
    .incbin \"@dir@/@name@.weights.bin\"
#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack,\"\",%progbits
#endif
")
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_COMPILER_ARG1} ${CMAKE_C_FLAGS}")
  add_custom_command(OUTPUT "${dir}/${name}.weights.o"
    COMMAND "${CMAKE_C_COMPILER}" ${flags} -c -o "${dir}/${name}.weights.o" "${dir}/${name}.weights.S"
    DEPENDS "${dir}/${name}.weights.S" "${dir}/${name}.weights.bin" VERBATIM)
  set_source_files_properties("${dir}/${name}.weights.o" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${result} "${dir}/${name}.weights.o" PARENT_SCOPE)
endfunction()

function(qxc_generate_model name model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "WEIGHTS_FILE" "SOURCES;PREFIX;DIRECTORY" "CALIB;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "qxc_generate_model(${name}): SOURCES is missing, or not understood: '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_PREFIX)
    set(arg_PREFIX "${name}")
  endif()
  if(NOT arg_PREFIX MATCHES "^[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*$")
    message(FATAL_ERROR "qxc_generate_model(${name}): '${arg_PREFIX}' is no prefix for C: give PREFIX")
  endif()
  if(NOT arg_DIRECTORY)
    set(arg_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${name}.qxc")
  endif()
  file(MAKE_DIRECTORY "${arg_DIRECTORY}")
  get_filename_component(model "${model}" ABSOLUTE)
  set(options "-name=${arg_PREFIX}" ${arg_OPTIONS})
  set(inputs "${model}")
  foreach(data IN LISTS arg_CALIB)
    get_filename_component(data "${data}" ABSOLUTE)
    list(APPEND inputs "${data}")
    list(APPEND options "-calib=${data}")
  endforeach()
  set(source "${arg_DIRECTORY}/${name}.c")
  set(made "${source}" "${arg_DIRECTORY}/${name}.h")
  set(result "${source}")
  if(arg_WEIGHTS_FILE)
    list(APPEND options -weights-file)
    list(APPEND made "${arg_DIRECTORY}/${name}.weights.bin")
    include(CheckCSourceCompiles)
    check_c_source_compiles("#ifndef __has_embed\n#error no\n#endif\nint main(void) { return 0; }" QXC_HAVE_EMBED)
    if(QXC_HAVE_EMBED)
      set_source_files_properties("${source}" PROPERTIES OBJECT_DEPENDS "${arg_DIRECTORY}/${name}.weights.bin")
    else()
      _qxc_weights_object("${name}" "${arg_PREFIX}" "${arg_DIRECTORY}" object)
      list(APPEND result "${object}")
    endif()
  endif()
  # The folder holds nothing else: -force, as its header may be left from a source that is gone.
  add_custom_command(OUTPUT ${made}
    COMMAND "${QXC_EXECUTABLE}" "${model}" -emit=c -quiet -force ${options} -o "${source}"
    DEPENDS ${inputs} "${QXC_EXECUTABLE}" COMMENT "qxc ${name}" VERBATIM)
  set(${arg_SOURCES} ${result} PARENT_SCOPE)
endfunction()

function(qxc_compile_model target model)
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${target}.qxc")
  qxc_generate_model("${target}" "${model}" SOURCES sources DIRECTORY "${dir}" ${ARGN})
  add_library("${target}" STATIC ${sources} "${dir}/${target}.h")
  target_include_directories("${target}" PUBLIC "${dir}")
  set_target_properties("${target}" PROPERTIES LINKER_LANGUAGE C)
  if(UNIX)
    target_link_libraries("${target}" PUBLIC m)
  endif()
endfunction()

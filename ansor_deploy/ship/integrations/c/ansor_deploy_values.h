/* Private to ansor_deploy.c: errors, and the values and functions of tvm_ffi's C ABI. */
#ifndef ANSOR_DEPLOY_VALUES_H
#define ANSOR_DEPLOY_VALUES_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* it has unnamed unions, which C99 has not */
#include <tvm/ffi/c_api.h>
#pragma GCC diagnostic pop

static __thread char last_error[1024];

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...) {
    char text[sizeof last_error]; /* an argument may be the last error */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\n') *at = ' ';
    memcpy(last_error, text, sizeof text);
    return -1;
}

/* What a function of tvm_ffi has raised becomes the last error. */
static int raised(void) {
    TVMFFIObjectHandle error = NULL;
    TVMFFIErrorMoveFromRaised(&error);
    if (error == NULL) return fail("unknown error");
    const TVMFFIErrorCell *cell = (const TVMFFIErrorCell *)((char *)error + sizeof(TVMFFIObject));
    fail("%.*s", (int)cell->message.size, cell->message.data);
    TVMFFIObjectDecRef(error);
    return -1;
}

static void *zeros(size_t count, size_t size) {
    void *made = calloc(count > 0 ? count : 1, size);
    if (made == NULL) fail("out of memory");
    return made;
}

/* A value that a function gives as its result is the caller's to release. */

static TVMFFIAny value(int32_t type) {
    TVMFFIAny made;
    memset(&made, 0, sizeof made);
    made.type_index = type;
    return made;
}

static TVMFFIAny integer(int64_t number) {
    TVMFFIAny made = value(kTVMFFIInt);
    made.v_int64 = number;
    return made;
}

static TVMFFIAny text(const char *string) {
    TVMFFIAny made = value(kTVMFFIRawStr);
    made.v_c_str = string;
    return made;
}

static void release(TVMFFIAny *one) {
    if (one->type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(one->v_obj);
    *one = value(kTVMFFINone);
}

static int call(TVMFFIObjectHandle function, TVMFFIAny *arguments, size_t count,
                TVMFFIAny *result) {
    *result = value(kTVMFFINone);
    return TVMFFIFunctionCall(function, arguments, (int32_t)count, result) == 0 ? 0 : raised();
}

static int call_global(const char *name, TVMFFIAny *arguments, size_t count, TVMFFIAny *result) {
    TVMFFIByteArray key = {name, strlen(name)};
    TVMFFIObjectHandle function = NULL;
    *result = value(kTVMFFINone);
    if (TVMFFIFunctionGetGlobal(&key, &function) != 0) return raised();
    if (function == NULL) return fail("TVM's runtime has no function %s", name);
    int status = call(function, arguments, count, result);
    TVMFFIObjectDecRef(function);
    return status;
}

/* 1 if a module, or one that it imports, has a function; 0 if not. */
static int has_function(TVMFFIAny module, const char *name) {
    TVMFFIAny arguments[] = {module, text(name), value(kTVMFFIBool)}, found;
    arguments[2].v_int64 = 1;
    return call_global("ffi.ModuleImplementsFunction", arguments, 3, &found) == 0 && found.v_int64;
}

/* A function of a module, or of one that it imports. */
static int get_function(TVMFFIAny module, const char *name, TVMFFIAny *result) {
    TVMFFIAny arguments[] = {module, text(name), value(kTVMFFIBool)};
    arguments[2].v_int64 = 1;
    if (call_global("ffi.ModuleGetFunction", arguments, 3, result) != 0) return -1;
    return result->type_index == kTVMFFIFunction ? 0 : fail("it has no function %s", name);
}

static int call_method(TVMFFIAny module, const char *name, TVMFFIAny *arguments, size_t count,
                       TVMFFIAny *result) {
    TVMFFIAny function;
    if (get_function(module, name, &function) != 0) return -1;
    int status = call(function.v_obj, arguments, count, result);
    release(&function);
    return status;
}

/* An entry of a map or an array, which has to be of a type. */
static int entry(TVMFFIAny of, TVMFFIAny key, int32_t type, TVMFFIAny *result) {
    TVMFFIAny arguments[] = {of, key};
    const char *get = of.type_index == kTVMFFIMap ? "ffi.MapGetItem" : "ffi.ArrayGetItem";
    if (call_global(get, arguments, 2, result) != 0) return -1;
    if (result->type_index == type) return 0;
    release(result);
    return fail("an entry has another type than it should");
}

#endif

/* See ansor_deploy.h. Valid C99 and valid C++, over the C ABI of tvm_ffi. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity, realpath */
#endif

#include "ansor_deploy.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic" /* it has unnamed unions, which C99 has not */
#include <tvm/ffi/c_api.h>
#pragma GCC diagnostic pop

typedef struct {
    ansor_deploy_tensor *items;
    size_t count;
} tensors;

struct ansor_deploy_model {
    char *path;
    tensors inputs, outputs;
    int64_t cores;        /* of the target: the most threads that a kernel takes */
    TVMFFIAny library;    /* the module of the file */
    TVMFFIAny machine;    /* the virtual machine that runs it */
    TVMFFIAny main;       /* the machine's function that computes the model */
    TVMFFIAny *arguments; /* a tensor an input, aligned as kernels expect it */
};

#ifdef __cplusplus
extern "C"
#endif
int TVMBackendParallelBarrier(int task, void *group);

/* Nothing else here is a symbol of libtvm_runtime, which a linker with --as-needed would leave
   out: but what it registers when it is loaded is called by name. */
__attribute__((used)) static int (*const needs_runtime)(int, void *) = TVMBackendParallelBarrier;

/* ---- Errors ---- */

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

const char *ansor_deploy_last_error(void) { return last_error; }

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

/* ---- Values and functions of tvm_ffi: who gets a value as a result releases it ---- */

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

static int get_function(TVMFFIAny module, const char *name, TVMFFIAny *result) {
    TVMFFIAny arguments[] = {module, text(name), value(kTVMFFIBool)};
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

/* ---- The manifest ---- */

/* An entry of a map or an array, which has to be of a type. */
static int entry(TVMFFIAny of, TVMFFIAny key, int32_t type, TVMFFIAny *result) {
    TVMFFIAny arguments[] = {of, key};
    const char *get = of.type_index == kTVMFFIMap ? "ffi.MapGetItem" : "ffi.ArrayGetItem";
    if (call_global(get, arguments, 2, result) != 0) return -1;
    if (result->type_index == type) return 0;
    release(result);
    return fail("an entry has another type than it should");
}

static int length(TVMFFIAny array, size_t *count) {
    TVMFFIAny size;
    if (call_global("ffi.ArraySize", &array, 1, &size) != 0) return -1;
    *count = (size_t)size.v_int64;
    return 0;
}

/* A copy, for the caller to free, of a string that lies in the value or in an object. */
static int read_text(TVMFFIAny map, const char *key, char **result) {
    TVMFFIAny arguments[] = {map, text(key)}, found;
    if (call_global("ffi.MapGetItem", arguments, 2, &found) != 0) return -1;
    TVMFFIByteArray bytes = {found.v_bytes, found.small_str_len};
    if (found.type_index == kTVMFFIStr)
        bytes = *(TVMFFIByteArray *)((char *)found.v_obj + sizeof(TVMFFIObject));
    else if (found.type_index != kTVMFFISmallStr)
        bytes.data = NULL;
    *result = bytes.data != NULL ? (char *)zeros(bytes.size + 1, 1) : NULL;
    if (*result != NULL) memcpy(*result, bytes.data, bytes.size);
    release(&found);
    return *result != NULL ? 0 : fail("%s is not a text", key);
}

static int read_shape(TVMFFIAny list, ansor_deploy_tensor *tensor) {
    if (length(list, &tensor->rank) != 0) return -1;
    int64_t *shape = (int64_t *)zeros(tensor->rank, sizeof *shape);
    tensor->shape = shape;
    if (shape == NULL) return -1;
    for (size_t at = 0; at < tensor->rank; at++) {
        TVMFFIAny extent;
        if (entry(list, integer((int64_t)at), kTVMFFIInt, &extent) != 0) return -1;
        shape[at] = extent.v_int64;
    }
    return 0;
}

static int count_bytes(ansor_deploy_tensor *tensor) {
    TVMFFIByteArray name = {tensor->dtype, strlen(tensor->dtype)};
    DLDataType type;
    if (TVMFFIDataTypeFromString(&name, &type) != 0) return raised();
    uint64_t bits = (uint64_t)type.bits * type.lanes;
    for (size_t at = 0; at < tensor->rank; at++)
        if (tensor->shape[at] < 0 ||
            __builtin_mul_overflow(bits, (uint64_t)tensor->shape[at], &bits))
            return fail("%s has an impossible shape", tensor->name);
    tensor->bytes = (size_t)(bits / 8 + (bits % 8 != 0));
    return 0;
}

static int read_tensor(TVMFFIAny list, size_t at, ansor_deploy_tensor *tensor) {
    TVMFFIAny told, shape = value(kTVMFFINone);
    char *name = NULL, *dtype = NULL;
    if (entry(list, integer((int64_t)at), kTVMFFIMap, &told) != 0) return -1;
    int bad = read_text(told, "name", &name) != 0 || read_text(told, "dtype", &dtype) != 0;
    tensor->name = name;
    tensor->dtype = dtype;
    bad = bad || entry(told, text("shape"), kTVMFFIArray, &shape) != 0;
    bad = bad || read_shape(shape, tensor) != 0 || count_bytes(tensor) != 0;
    release(&shape);
    release(&told);
    return bad ? -1 : 0;
}

static int read_tensors(TVMFFIAny manifest, const char *key, tensors *result) {
    TVMFFIAny list;
    size_t count = 0;
    if (entry(manifest, text(key), kTVMFFIArray, &list) != 0) return -1;
    int bad = length(list, &count) != 0;
    result->items = (ansor_deploy_tensor *)zeros(count, sizeof *result->items);
    if (result->items == NULL) bad = 1;
    for (; !bad && result->count < count; result->count++)
        bad = read_tensor(list, result->count, &result->items[result->count]) != 0;
    release(&list);
    return bad ? -1 : 0;
}

static int read_number(TVMFFIAny manifest, const char *section, const char *key, int64_t *result) {
    TVMFFIAny map, number;
    if (entry(manifest, text(section), kTVMFFIMap, &map) != 0) return -1;
    int status = entry(map, text(key), kTVMFFIInt, &number);
    if (status == 0) *result = number.v_int64;
    release(&map);
    return status;
}

/* The whole file as a string, for the caller to free; NULL, and the last error, if not. */
static char *read_file(const char *path) {
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &about) != 0) {
        fail("%s", strerror(errno));
        if (file != NULL) fclose(file);
        return NULL;
    }
    char *read = (char *)zeros((size_t)about.st_size + 1, 1);
    if (read != NULL && fread(read, 1, (size_t)about.st_size, file) != (size_t)about.st_size) {
        fail("it cannot be read");
        free(read);
        read = NULL;
    }
    fclose(file);
    return read;
}

static int understand(ansor_deploy_model *model, const char *json, int64_t *bytes) {
    TVMFFIAny argument = text(json), manifest;
    if (call_global("ffi.json.Parse", &argument, 1, &manifest) != 0) return -1;
    int bad = manifest.type_index != kTVMFFIMap ? fail("it is not an object") : 0;
    bad = bad || read_number(manifest, "artifact", "bytes", bytes) != 0 ||
          read_number(manifest, "target", "cores", &model->cores) != 0 ||
          read_tensors(manifest, "inputs", &model->inputs) != 0 ||
          read_tensors(manifest, "outputs", &model->outputs) != 0;
    release(&manifest);
    return bad ? -1 : 0;
}

static int check_size(const char *path, int64_t bytes) {
    struct stat about;
    if (stat(path, &about) != 0) return fail("%s: %s", path, strerror(errno));
    if ((int64_t)about.st_size == bytes) return 0;
    return fail("%s: %lld bytes where its manifest says %lld", path, (long long)about.st_size,
                (long long)bytes);
}

/* The library's path with .json in the place of its suffix. */
static int read_manifest(ansor_deploy_model *model) {
    const char *slash = strrchr(model->path, '/');
    const char *name = slash != NULL ? slash + 1 : model->path;
    const char *dot = strrchr(name, '.');
    size_t stem = dot != NULL && dot != name ? (size_t)(dot - model->path) : strlen(model->path);
    char path[PATH_MAX];
    int64_t bytes = 0;
    if (stem + sizeof ".json" > sizeof path) return fail("%s: too long a path", model->path);
    memcpy(path, model->path, stem);
    memcpy(path + stem, ".json", sizeof ".json");
    char *json = read_file(path);
    int status = json != NULL ? understand(model, json, &bytes) : -1;
    free(json);
    if (status != 0) return fail("%s: no manifest of a library: %s", path, last_error);
    return check_size(model->path, bytes);
}

/* ---- Threads ---- */

/* The processors that this thread may run on: their numbers as texts; how many. */
static size_t list_processors(char names[CPU_SETSIZE][8]) {
    cpu_set_t allowed;
    size_t count = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
    for (int at = 0; at < CPU_SETSIZE; at++)
        if (CPU_ISSET(at, &allowed)) snprintf(names[count++], sizeof names[0], "%d", at);
    return count;
}

static int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

/* By itself TVM takes half of an x86 machine's processors and pins a thread to each, the
   caller's among them. Here its threads share all that the caller may use. A pool belongs to
   the thread that runs a model: each sets up its own. */
static int use_threads(int64_t cores) {
    static __thread int64_t in_use;
    char names[CPU_SETSIZE][8];
    TVMFFIAny texts[CPU_SETSIZE], list, nothing, shared = integer(-3);
    size_t count = in_use == cores ? 0 : list_processors(names);
    if (count == 0) return 0;
    int64_t width = lesser(cores > 0 ? cores : 1, (int64_t)count);
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)width);
    setenv("TVM_NUM_THREADS", digits, 0); /* how many threads a pool has, however many it uses */
    for (size_t at = 0; at < count; at++) texts[at] = text(names[at]);
    if (call_global("ffi.Array", texts, count, &list) != 0) return -1;
    TVMFFIAny arguments[] = {shared, integer(width), list};
    int status = call_global("runtime.config_threadpool", arguments, 3, &nothing);
    release(&list);
    in_use = status == 0 ? cores : 0;
    return status;
}

/* ---- Loading ---- */

static int start(ansor_deploy_model *model) {
    char *resolved = realpath(model->path, NULL); /* a bare name would be looked up elsewhere */
    TVMFFIAny file = text(resolved), nothing;
    if (resolved == NULL) return fail("%s", strerror(errno));
    int status = call_global("ffi.ModuleLoadFromFile", &file, 1, &model->library);
    free(resolved);
    if (status != 0) return -1;
    if (call_method(model->library, "vm_load_executable", NULL, 0, &model->machine) != 0) return -1;
    TVMFFIAny place[] = {integer(kDLCPU), integer(0), integer(2)}; /* 2: memory is kept, pooled */
    if (call_method(model->machine, "vm_initialization", place, 3, &nothing) != 0) return -1;
    return get_function(model->machine, "main", &model->main);
}

static int make_argument(const ansor_deploy_tensor *tensor, TVMFFIAny *result) {
    TVMFFIByteArray name = {tensor->dtype, strlen(tensor->dtype)};
    TVMFFIAny shape, type = value(kTVMFFIDataType), cpu = value(kTVMFFIDevice);
    TVMFFIAny *extents = (TVMFFIAny *)zeros(tensor->rank, sizeof *extents);
    if (extents == NULL) return -1;
    for (size_t at = 0; at < tensor->rank; at++) extents[at] = integer(tensor->shape[at]);
    int status = call_global("ffi.Shape", extents, tensor->rank, &shape);
    free(extents);
    if (status != 0) return -1;
    cpu.v_device.device_type = kDLCPU;
    if (TVMFFIDataTypeFromString(&name, &type.v_dtype) != 0) status = raised();
    TVMFFIAny arguments[] = {shape, type, cpu, value(kTVMFFINone)};
    if (status == 0) status = call_global("runtime.TVMTensorAllocWithScope", arguments, 4, result);
    release(&shape);
    return status;
}

static int make_arguments(ansor_deploy_model *model) {
    model->arguments = (TVMFFIAny *)zeros(model->inputs.count, sizeof *model->arguments);
    if (model->arguments == NULL) return -1;
    for (size_t at = 0; at < model->inputs.count; at++)
        if (make_argument(&model->inputs.items[at], &model->arguments[at]) != 0) return -1;
    return 0;
}

static int open_model(ansor_deploy_model *model, const char *path) {
    model->path = strdup(path);
    if (model->path == NULL) return fail("out of memory");
    if (read_manifest(model) != 0) return -1;
    if (use_threads(model->cores) != 0 || start(model) != 0 || make_arguments(model) != 0)
        return fail("%s: cannot be loaded: %s", path, last_error);
    return 0;
}

ansor_deploy_model *ansor_deploy_load(const char *path) {
    ansor_deploy_model *model = (ansor_deploy_model *)zeros(1, sizeof *model);
    if (model == NULL) return NULL;
    if (open_model(model, path) == 0) return model;
    ansor_deploy_free(model);
    return NULL;
}

static void free_tensors(tensors *list) {
    for (size_t at = 0; at < list->count; at++) {
        free((void *)list->items[at].name);
        free((void *)list->items[at].dtype);
        free((void *)list->items[at].shape);
    }
    free(list->items);
}

void ansor_deploy_free(ansor_deploy_model *model) {
    if (model == NULL) return;
    for (size_t at = 0; model->arguments != NULL && at < model->inputs.count; at++)
        release(&model->arguments[at]);
    free(model->arguments);
    release(&model->main);
    release(&model->machine);
    release(&model->library);
    free_tensors(&model->inputs);
    free_tensors(&model->outputs);
    free(model->path);
    free(model);
}

/* ---- What a model takes and gives ---- */

const ansor_deploy_tensor *ansor_deploy_inputs(const ansor_deploy_model *model, size_t *count) {
    *count = model->inputs.count;
    return model->inputs.items;
}

const ansor_deploy_tensor *ansor_deploy_outputs(const ansor_deploy_model *model, size_t *count) {
    *count = model->outputs.count;
    return model->outputs.items;
}

static int same(const ansor_deploy_tensor *one, const ansor_deploy_tensor *other) {
    return strcmp(one->name, other->name) == 0 && strcmp(one->dtype, other->dtype) == 0 &&
           one->rank == other->rank && one->bytes == other->bytes &&
           (one->rank == 0 || memcmp(one->shape, other->shape, one->rank * sizeof *one->shape) == 0);
}

static int expect(const ansor_deploy_model *model, const char *kind, const tensors *have,
                  const ansor_deploy_tensor *want, size_t count) {
    if (have->count != count)
        return fail("%s: it has %zu %ss, and %zu are expected", model->path, have->count, kind,
                    count);
    for (size_t at = 0; at < count; at++)
        if (!same(&have->items[at], &want[at]))
            return fail("%s: its %s %zu is %s, %s, %zu bytes; expected %s, %s, %zu bytes",
                        model->path, kind, at, have->items[at].name, have->items[at].dtype,
                        have->items[at].bytes, want[at].name, want[at].dtype, want[at].bytes);
    return 0;
}

int ansor_deploy_expect(const ansor_deploy_model *model, const ansor_deploy_tensor *inputs,
                        size_t input_count, const ansor_deploy_tensor *outputs,
                        size_t output_count) {
    if (expect(model, "input", &model->inputs, inputs, input_count) != 0) return -1;
    return expect(model, "output", &model->outputs, outputs, output_count);
}

/* ---- Running ---- */

static int fits(const ansor_deploy_model *model, const ansor_deploy_tensor *wanted,
                const char *dtype, const void *data, size_t bytes) {
    if (dtype != NULL && strcmp(dtype, wanted->dtype) == 0 && bytes == wanted->bytes &&
        (data != NULL || bytes == 0))
        return 0;
    return fail("%s: %s is %s, %zu bytes; given %s, %zu bytes%s", model->path, wanted->name,
                wanted->dtype, wanted->bytes, dtype != NULL ? dtype : "no type", bytes,
                data != NULL ? "" : " at NULL");
}

static int check(const ansor_deploy_model *model, const ansor_deploy_input *inputs,
                 size_t input_count, const ansor_deploy_output *outputs, size_t output_count) {
    const tensors *takes = &model->inputs, *gives = &model->outputs;
    if (input_count != takes->count || output_count != gives->count)
        return fail("%s: it has %zu inputs and %zu outputs; given %zu and %zu", model->path,
                    takes->count, gives->count, input_count, output_count);
    for (size_t at = 0; at < input_count; at++)
        if (fits(model, &takes->items[at], inputs[at].dtype, inputs[at].data, inputs[at].bytes))
            return -1;
    for (size_t at = 0; at < output_count; at++)
        if (fits(model, &gives->items[at], outputs[at].dtype, outputs[at].data, outputs[at].bytes))
            return -1;
    return 0;
}

static DLTensor *memory(TVMFFIAny tensor) {
    return (DLTensor *)((char *)tensor.v_obj + sizeof(TVMFFIObject));
}

static void copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
}

static size_t held_bytes(const DLTensor *tensor) {
    uint64_t bits = (uint64_t)tensor->dtype.bits * tensor->dtype.lanes;
    for (int32_t at = 0; at < tensor->ndim; at++) bits *= (uint64_t)tensor->shape[at];
    return (size_t)(bits / 8 + (bits % 8 != 0));
}

static int copy_out(TVMFFIAny result, size_t at, const ansor_deploy_output *output) {
    TVMFFIAny one = value(kTVMFFINone);
    int only = result.type_index == kTVMFFITensor;
    if (!only && entry(result, integer((int64_t)at), kTVMFFITensor, &one) != 0) return -1;
    const DLTensor *tensor = memory(only ? result : one);
    int bad = held_bytes(tensor) != output->bytes;
    if (!bad) copy(output->data, (char *)tensor->data + tensor->byte_offset, output->bytes);
    release(&one);
    return bad ? fail("its output %zu has another size than its manifest says", at) : 0;
}

int ansor_deploy_run(ansor_deploy_model *model, const ansor_deploy_input *inputs,
                     size_t input_count, const ansor_deploy_output *outputs,
                     size_t output_count) {
    TVMFFIAny result;
    if (check(model, inputs, input_count, outputs, output_count) != 0) return -1;
    for (size_t at = 0; at < input_count; at++)
        copy(memory(model->arguments[at])->data, inputs[at].data, inputs[at].bytes);
    int bad = use_threads(model->cores) != 0 ||
              call(model->main.v_obj, model->arguments, input_count, &result) != 0;
    if (bad) return fail("%s: cannot be run: %s", model->path, last_error);
    for (size_t at = 0; !bad && at < output_count; at++)
        bad = copy_out(result, at, &outputs[at]) != 0;
    release(&result);
    return bad ? fail("%s: cannot be run: %s", model->path, last_error) : 0;
}

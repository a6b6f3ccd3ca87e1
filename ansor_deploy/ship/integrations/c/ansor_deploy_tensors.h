/* Private to ansor_deploy.c: tensors as a manifest describes them. */
#ifndef ANSOR_DEPLOY_TENSORS_H
#define ANSOR_DEPLOY_TENSORS_H

#include "ansor_deploy.h"
#include "ansor_deploy_values.h"

typedef struct {
    ansor_deploy_tensor *items;
    size_t count;
} tensors;

static int length(TVMFFIAny array, size_t *count) {
    TVMFFIAny size;
    if (call_global("ffi.ArraySize", &array, 1, &size) != 0) return -1;
    *count = (size_t)size.v_int64;
    return 0;
}

/* A copy, for the caller to free, of a string that lies in the value or in an object. */
static int copy_text(TVMFFIAny found, const char *what, char **result) {
    TVMFFIByteArray bytes = {found.v_bytes, found.small_str_len};
    if (found.type_index == kTVMFFIStr)
        bytes = *(TVMFFIByteArray *)((char *)found.v_obj + sizeof(TVMFFIObject));
    else if (found.type_index != kTVMFFISmallStr)
        bytes.data = NULL;
    *result = bytes.data != NULL ? (char *)zeros(bytes.size + 1, 1) : NULL;
    if (*result != NULL) memcpy(*result, bytes.data, bytes.size);
    return *result != NULL ? 0 : fail("%s is not a text", what);
}

static int read_text(TVMFFIAny map, const char *key, char **result) {
    TVMFFIAny arguments[] = {map, text(key)}, found;
    if (call_global("ffi.MapGetItem", arguments, 2, &found) != 0) return -1;
    int status = copy_text(found, key, result);
    release(&found);
    return status;
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
    TVMFFIAny item, shape = value(kTVMFFINone);
    char *name = NULL, *dtype = NULL;
    if (entry(list, integer((int64_t)at), kTVMFFIMap, &item) != 0) return -1;
    int bad = read_text(item, "name", &name) != 0 || read_text(item, "dtype", &dtype) != 0;
    tensor->name = name;
    tensor->dtype = dtype;
    bad = bad || entry(item, text("shape"), kTVMFFIArray, &shape) != 0;
    bad = bad || read_shape(shape, tensor) != 0 || count_bytes(tensor) != 0;
    release(&shape);
    release(&item);
    return bad ? -1 : 0;
}

static int read_tensors(TVMFFIAny map, const char *key, tensors *result) {
    TVMFFIAny list;
    size_t count = 0;
    if (entry(map, text(key), kTVMFFIArray, &list) != 0) return -1;
    int bad = length(list, &count) != 0;
    result->items = (ansor_deploy_tensor *)zeros(count, sizeof *result->items);
    if (result->items == NULL) bad = 1;
    for (; !bad && result->count < count; result->count++)
        bad = read_tensor(list, result->count, &result->items[result->count]) != 0;
    release(&list);
    return bad ? -1 : 0;
}

static void free_tensors(tensors *list) {
    for (size_t at = 0; at < list->count; at++) {
        free((void *)list->items[at].name);
        free((void *)list->items[at].dtype);
        free((void *)list->items[at].shape);
    }
    free(list->items);
}

/* The input of a name; -1 if there is none. */
static int find_tensor(const tensors *list, const char *name, size_t *at) {
    for (*at = 0; *at < list->count; ++*at)
        if (strcmp(list->items[*at].name, name) == 0) return 0;
    return fail("it has no input %s", name);
}

#endif

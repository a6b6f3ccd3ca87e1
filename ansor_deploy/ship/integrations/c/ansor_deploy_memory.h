/* Private to ansor_deploy.c: tensors in the memory of whoever runs a model, or in memory of ours. */
#ifndef ANSOR_DEPLOY_MEMORY_H
#define ANSOR_DEPLOY_MEMORY_H

#include "ansor_deploy.h"
#include "ansor_deploy_values.h"

#include <stdlib.h>

/* Where a tensor begins that is ours: with a cache line. */
#define ALIGNMENT 64

/* An argument of a function: the same tensor in each call, wherever its elements then are. */
typedef struct {
    DLManagedTensor view; /* what the tensor was made of; owns nothing */
    TVMFFIAny tensor;
    void *spare; /* memory of ours, once it was needed */
    int borrowed; /* in this call it lies in the caller's memory */
} argument;

typedef struct {
    TVMFFIAny main;      /* the machine's function that computes the model into given outputs */
    argument *arguments; /* one an input, and one an output */
    TVMFFIAny *values;   /* their tensors */
} runner;

static DLTensor *memory(TVMFFIAny tensor) {
    return (DLTensor *)((char *)tensor.v_obj + sizeof(TVMFFIObject));
}

static int make_argument(const ansor_deploy_tensor *info, argument *made) {
    TVMFFIByteArray name = {info->dtype, strlen(info->dtype)};
    TVMFFIObjectHandle tensor = NULL;
    DLTensor *view = &made->view.dl_tensor;
    if (TVMFFIDataTypeFromString(&name, &view->dtype) != 0) return raised();
    view->shape = (int64_t *)info->shape;
    view->ndim = (int32_t)info->rank;
    view->device.device_type = kDLCPU;
    if (TVMFFITensorFromDLPack(&made->view, 0, 0, &tensor) != 0) return raised();
    made->tensor = value(kTVMFFITensor);
    made->tensor.v_obj = (TVMFFIObject *)tensor;
    return 0;
}

static void free_argument(argument *one) {
    release(&one->tensor);
    free(one->spare);
}

static void copy(void *to, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
}

/* Whether elements of a tensor's type may lie there: kernels rely on that. */
static int suits(const argument *one, const void *data) {
    DLDataType type = one->view.dl_tensor.dtype;
    uintptr_t size = (uintptr_t)type.bits * type.lanes / 8;
    return data != NULL && (size < 2 || (uintptr_t)data % size == 0);
}

static int overlap(const void *one, size_t bytes, const void *other, size_t others) {
    uintptr_t a = (uintptr_t)one, b = (uintptr_t)other;
    return a < b + others && b < a + bytes;
}

/* Let a tensor lie where its caller has it, or, where that is NULL, in memory of ours. */
static int put(argument *one, const void *data, size_t bytes) {
    one->borrowed = data != NULL;
    if (data == NULL && one->spare == NULL &&
        posix_memalign(&one->spare, ALIGNMENT, bytes > 0 ? bytes : 1) != 0)
        return fail("out of memory");
    memory(one->tensor)->data = data != NULL ? (void *)data : one->spare;
    return 0;
}

static int fits(const char *path, const ansor_deploy_tensor *wanted,
                const char *dtype, const void *data, size_t bytes) {
    if (dtype != NULL && strcmp(dtype, wanted->dtype) == 0 && bytes == wanted->bytes &&
        (data != NULL || bytes == 0))
        return 0;
    return fail("%s: %s is %s, %zu bytes; given %s, %zu bytes%s", path, wanted->name,
                wanted->dtype, wanted->bytes, dtype != NULL ? dtype : "no type", bytes,
                data != NULL ? "" : " at NULL");
}

#endif

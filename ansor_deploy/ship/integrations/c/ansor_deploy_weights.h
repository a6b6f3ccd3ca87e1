/* Private to ansor_deploy.c: the weights behind a library's code, as one tensor that is mapped. */
#ifndef ANSOR_DEPLOY_WEIGHTS_H
#define ANSOR_DEPLOY_WEIGHTS_H

#include "ansor_deploy_manifest.h" /* file_bytes */
#include "ansor_deploy_values.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    DLManagedTensor tensor;
    int64_t bytes; /* its only extent */
    void *file;    /* all of it, mapped */
    size_t length;
} weights_block;

static void unmap_block(DLManagedTensor *tensor) {
    weights_block *block = (weights_block *)tensor->manager_ctx;
    if (block->file != NULL) munmap(block->file, block->length);
    free(block);
}

static void *map_file(const char *path, size_t *length) {
    void *mapped = MAP_FAILED;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int64_t bytes = file >= 0 ? file_bytes(file) : -1;
    if (bytes >= 0) {
        *length = (size_t)bytes;
        mapped = mmap(NULL, *length, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (mapped == MAP_FAILED) fail("%s", strerror(errno));
    if (file >= 0) close(file);
    return mapped != MAP_FAILED ? mapped : NULL;
}

/* The last bytes of a file: its own pages, which all processes that map it share. */
static int map_weights(const char *path, int64_t bytes, TVMFFIAny *result) {
    weights_block *block = (weights_block *)zeros(1, sizeof *block);
    if (block == NULL) return -1;
    block->bytes = bytes;
    block->file = map_file(path, &block->length);
    block->tensor.manager_ctx = block;
    block->tensor.deleter = unmap_block;
    block->tensor.dl_tensor.shape = &block->bytes;
    block->tensor.dl_tensor.ndim = 1;
    block->tensor.dl_tensor.device.device_type = kDLCPU;
    block->tensor.dl_tensor.dtype.code = kDLUInt;
    block->tensor.dl_tensor.dtype.bits = 8;
    block->tensor.dl_tensor.dtype.lanes = 1;
    int bad = block->file == NULL;
    if (!bad && (uint64_t)bytes > block->length) bad = fail("its weights are cut short") != 0;
    if (!bad) block->tensor.dl_tensor.data = (char *)block->file + (block->length - (size_t)bytes);
    TVMFFIObjectHandle tensor = NULL;
    if (!bad && TVMFFITensorFromDLPack(&block->tensor, 0, 0, &tensor) != 0) bad = raised();
    *result = value(bad ? kTVMFFINone : kTVMFFITensor);
    result->v_obj = (TVMFFIObject *)tensor;
    if (bad) unmap_block(&block->tensor);
    return bad ? -1 : 0;
}

/* A function of a machine gets its last arguments, views of the block, for good, and a name. */
static int bind_views(TVMFFIAny machine, const char *function, const char *bound,
                      TVMFFIAny views) {
    TVMFFIAny size, nothing;
    if (call_global("ffi.ArraySize", &views, 1, &size) != 0) return -1;
    size_t count = (size_t)size.v_int64, given = 3;
    TVMFFIAny *arguments = (TVMFFIAny *)zeros(given + count, sizeof *arguments);
    if (arguments == NULL) return -1;
    arguments[0] = text(function);
    arguments[1] = text(bound);
    arguments[2] = integer(1);
    int bad = 0;
    while (!bad && given < count + 3) {
        bad = entry(views, integer((int64_t)given - 3), kTVMFFITensor, &arguments[given]) != 0;
        given += bad ? 0 : 1;
    }
    bad = bad || call_method(machine, "save_function", arguments, given, &nothing) != 0;
    for (size_t at = 3; at < given; at++) release(&arguments[at]);
    free(arguments);
    return bad ? -1 : 0;
}

/* name: without the "_into" that the function has. In the code of a number, names of functions
   begin with it; the first has none. */
static int bind_function(TVMFFIAny machine, int64_t code, const char *name, const char *function,
                         TVMFFIAny block) {
    TVMFFIAny views;
    char prefix[32] = "", binder[96], full[96];
    if (code > 0) snprintf(prefix, sizeof prefix, "code_%lld_", (long long)code);
    snprintf(binder, sizeof binder, "%s%s_weights", prefix, name);
    snprintf(full, sizeof full, "%s%s", prefix, function);
    if (call_method(machine, binder, &block, 1, &views) != 0) return -1;
    int status = bind_views(machine, full, function, views);
    release(&views);
    return status;
}

/* The weights of a library. */
static int open_weights(TVMFFIAny machine, const char *path, TVMFFIAny *block) {
    TVMFFIAny size;
    *block = value(kTVMFFINone);
    if (call_method(machine, "weights_size", NULL, 0, &size) != 0) return -1;
    if (size.type_index != kTVMFFIInt) return fail("its weights have no size");
    return map_weights(path, size.v_int64, block);
}

#endif

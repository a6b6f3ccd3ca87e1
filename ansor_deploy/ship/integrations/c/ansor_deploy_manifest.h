/* Private to ansor_deploy.c: what the manifest beside a library says of it. */
#ifndef ANSOR_DEPLOY_MANIFEST_H
#define ANSOR_DEPLOY_MANIFEST_H

#include "ansor_deploy.h"
#include "ansor_deploy_context.h"
#include "ansor_deploy_tensors.h"
#include "ansor_deploy_values.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define MOST_NESTED 64

typedef struct {
    tensors inputs, outputs;
} interface;

typedef struct {
    int64_t least, most;     /* rows; 0 where there are no batches but the variants' */
    int64_t part;            /* what a part costs beside its rows */
    unsigned char *has_rows; /* by input: whether it has one for each of the batch */
    size_t *next;            /* by the rows that are left: the variant of the next part */
} batches;

typedef struct {
    interface *variants; /* one a shape that the library was built for */
    size_t count;
    context kept; /* from one step to the next; with no rows if that is nothing */
    batches range;
    int64_t threads; /* that a run takes, by the library's preset; -1 for one a core */
} manifest;

static int read_batches(TVMFFIAny map, manifest *declared); /* ansor_deploy_batches.h */

/* Bytes of an open file, read from its beginning afterwards; -1 if it has no size. Not by fstat():
   that would ask for a newer C library than TVM's runtime does. */
static int64_t file_bytes(int file) {
    off_t bytes = lseek(file, 0, SEEK_END);
    return bytes >= 0 && lseek(file, 0, SEEK_SET) == 0 ? (int64_t)bytes : -1;
}

static int read_number(TVMFFIAny map, const char *section, const char *key, int64_t *result) {
    TVMFFIAny part, number;
    if (entry(map, text(section), kTVMFFIMap, &part) != 0) return -1;
    int status = entry(part, text(key), kTVMFFIInt, &number);
    if (status == 0) *result = number.v_int64;
    release(&part);
    return status;
}

static int read_interface(TVMFFIAny map, interface *result) {
    if (read_tensors(map, "inputs", &result->inputs) != 0) return -1;
    return read_tensors(map, "outputs", &result->outputs);
}

static int read_variant(TVMFFIAny list, size_t at, interface *result) {
    TVMFFIAny one;
    if (entry(list, integer((int64_t)at), kTVMFFIMap, &one) != 0) return -1;
    int status = read_interface(one, result);
    release(&one);
    return status;
}

/* A library of one shape has its inputs and outputs in the manifest itself. */
static int read_variants(TVMFFIAny map, manifest *declared) {
    TVMFFIAny arguments[] = {map, text("variants")}, list = value(kTVMFFINone), has;
    size_t count = 1;
    if (call_global("ffi.MapCount", arguments, 2, &has) != 0) return -1;
    if (has.v_int64 != 0 && call_global("ffi.MapGetItem", arguments, 2, &list) != 0) return -1;
    int several = list.type_index == kTVMFFIArray;
    int bad = several && length(list, &count) != 0;
    declared->variants = (interface *)zeros(count, sizeof *declared->variants);
    if (declared->variants == NULL) bad = 1;
    if (count == 0) bad = fail("it has no variants") != 0;
    for (; !bad && declared->count < count; declared->count++) {
        interface *next = &declared->variants[declared->count];
        bad = (several ? read_variant(list, declared->count, next) : read_interface(map, next)) != 0;
    }
    release(&list);
    return bad ? -1 : 0;
}

/* The whole file as a string, for the caller to free; NULL, and the last error, if not. */
static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    int64_t bytes = file != NULL ? file_bytes(fileno(file)) : -1;
    if (bytes < 0) {
        fail("%s", strerror(errno));
        if (file != NULL) fclose(file);
        return NULL;
    }
    char *read = (char *)zeros((size_t)bytes + 1, 1);
    if (read != NULL && fread(read, 1, (size_t)bytes, file) != (size_t)bytes) {
        fail("it cannot be read");
        free(read);
        read = NULL;
    }
    fclose(file);
    return read;
}

static int read_preset(TVMFFIAny map, manifest *declared) {
    TVMFFIAny arguments[] = {map, text("preset")}, has;
    declared->threads = -1;
    if (call_global("ffi.MapCount", arguments, 2, &has) != 0) return -1;
    return has.v_int64 != 0 ? read_number(map, "preset", "threads", &declared->threads) : 0;
}

/* The parser calls itself for what lies in a list or an object: too deep a text ends the program. */
static int check_depth(const char *json) {
    int depth = 0, quoted = 0;
    for (; *json != '\0' && depth <= MOST_NESTED; json++) {
        if (quoted && *json == '\\' && json[1] != '\0')
            json++;
        else if (*json == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*json == '[' || *json == '{') - (*json == ']' || *json == '}');
    }
    return depth <= MOST_NESTED ? 0 : fail("it is nested too deeply");
}

static int understand(const char *json, manifest *declared, int64_t *bytes) {
    TVMFFIAny argument = text(json), map;
    if (check_depth(json) != 0) return -1;
    if (call_global("ffi.json.Parse", &argument, 1, &map) != 0) return -1;
    int bad = map.type_index != kTVMFFIMap ? fail("it is not an object") : 0;
    bad = bad || read_number(map, "artifact", "bytes", bytes) != 0 ||
          read_preset(map, declared) != 0 || read_variants(map, declared) != 0 ||
          read_batches(map, declared) != 0 ||
          read_context(map, &declared->variants[0].inputs, &declared->kept) != 0;
    release(&map);
    return bad ? -1 : 0;
}

static int check_size(const char *path, int64_t bytes) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int64_t size = file >= 0 ? file_bytes(file) : -1;
    if (size < 0) fail("%s: %s", path, strerror(errno));
    if (file >= 0) close(file);
    if (size < 0 || size == bytes) return size < 0 ? -1 : 0;
    return fail("%s: %lld bytes where its manifest says %lld", path, (long long)size,
                (long long)bytes);
}

/* The library's path with .json in the place of its suffix. */
static int read_manifest(const char *library, manifest *declared) {
    const char *slash = strrchr(library, '/');
    const char *name = slash != NULL ? slash + 1 : library;
    const char *dot = strrchr(name, '.');
    size_t stem = dot != NULL && dot != name ? (size_t)(dot - library) : strlen(library);
    char path[PATH_MAX];
    int64_t bytes = 0;
    if (stem + sizeof ".json" > sizeof path) return fail("%s: too long a path", library);
    memcpy(path, library, stem);
    memcpy(path + stem, ".json", sizeof ".json");
    char *json = read_file(path);
    int status = json != NULL ? understand(json, declared, &bytes) : -1;
    free(json);
    if (status != 0) return fail("%s: no manifest of a library: %s", path, last_error);
    return check_size(library, bytes);
}

static void free_variants(manifest *declared) {
    for (size_t at = 0; at < declared->count; at++) {
        free_tensors(&declared->variants[at].inputs);
        free_tensors(&declared->variants[at].outputs);
    }
    free(declared->variants);
    free_context(&declared->kept);
}

#endif

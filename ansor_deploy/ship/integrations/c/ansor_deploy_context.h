/* Private to ansor_deploy.c: caches that a model keeps, and other inputs that grow with them. */
#ifndef ANSOR_DEPLOY_CONTEXT_H
#define ANSOR_DEPLOY_CONTEXT_H

#include "ansor_deploy_tensors.h"

/* An input of a step's function, row by row: `outer` times so many rows of `inner` bytes. */
typedef struct {
    char *memory; /* with room for all rows, those that do not count zeros; NULL if it has none */
    int is_cache; /* and so no input of a step */
    size_t outer, rows, inner;
    size_t more; /* how many rows beyond those that count are given */
} room;

typedef struct {
    size_t rows, tokens;
    size_t length; /* the input that says how many rows count */
    int64_t counted;
    room *rooms;               /* one an input */
    ansor_deploy_tensor *step; /* the inputs of a step, described as in the list of all */
    ansor_deploy_input *given; /* all inputs, as the function takes them */
    size_t inputs, step_inputs;
} context;

static int read_size(TVMFFIAny map, const char *key, size_t *result) {
    TVMFFIAny number;
    if (entry(map, text(key), kTVMFFIInt, &number) != 0) return -1;
    *result = (size_t)number.v_int64;
    return 0;
}

/* Where an axis of the model's lies in memory. */
static int read_axis(TVMFFIAny map, size_t *axis) {
    TVMFFIAny order;
    size_t rank = 0, wanted;
    if (read_size(map, "axis", axis) != 0) return -1;
    if (entry(map, text("order"), kTVMFFIArray, &order) != 0) return -1;
    wanted = *axis;
    int bad = length(order, &rank) != 0;
    for (size_t at = 0; !bad && at < rank; at++) {
        TVMFFIAny one;
        bad = entry(order, integer((int64_t)at), kTVMFFIInt, &one) != 0;
        if (!bad && (size_t)one.v_int64 == wanted) *axis = at;
    }
    release(&order);
    return bad ? -1 : 0;
}

static int make_room(const ansor_deploy_tensor *tensor, size_t axis, room *made) {
    if (axis >= tensor->rank) return fail("%s has no axis %zu", tensor->name, axis);
    made->rows = (size_t)tensor->shape[axis];
    made->outer = 1;
    for (size_t at = 0; at < axis; at++) made->outer *= (size_t)tensor->shape[at];
    size_t all = made->outer * made->rows;
    made->inner = all > 0 ? tensor->bytes / all : 0;
    made->memory = (char *)zeros(tensor->bytes, 1);
    return made->memory != NULL ? 0 : -1;
}

static int read_cache(TVMFFIAny one, const tensors *inputs, context *kept) {
    char *name = NULL;
    size_t at = 0, axis = 0;
    int bad = read_text(one, "input", &name) != 0 || find_tensor(inputs, name, &at) != 0 ||
              read_axis(one, &axis) != 0 ||
              make_room(&inputs->items[at], axis, &kept->rooms[at]) != 0;
    if (!bad) kept->rooms[at].is_cache = 1;
    free(name);
    return bad ? -1 : 0;
}

static int read_counted(TVMFFIAny one, const tensors *inputs, context *kept) {
    char *name = NULL;
    size_t at = 0, axis = 0, more = 0;
    int bad = read_text(one, "name", &name) != 0 || find_tensor(inputs, name, &at) != 0 ||
              read_size(one, "axis", &axis) != 0 || read_size(one, "more", &more) != 0 ||
              make_room(&inputs->items[at], axis, &kept->rooms[at]) != 0;
    if (!bad) kept->rooms[at].more = more;
    free(name);
    return bad ? -1 : 0;
}

typedef int (*read_one)(TVMFFIAny one, const tensors *inputs, context *kept);

static int read_rooms(TVMFFIAny map, const char *key, read_one read, const tensors *inputs,
                      context *kept) {
    TVMFFIAny list, one;
    size_t count = 0;
    if (entry(map, text(key), kTVMFFIArray, &list) != 0) return -1;
    int bad = length(list, &count) != 0;
    for (size_t at = 0; !bad && at < count; at++) {
        bad = entry(list, integer((int64_t)at), kTVMFFIMap, &one) != 0;
        if (bad) break;
        bad = read(one, inputs, kept) != 0;
        release(&one);
    }
    release(&list);
    return bad ? -1 : 0;
}

static int read_parts(TVMFFIAny map, const tensors *inputs, context *kept) {
    char *name = NULL;
    kept->inputs = inputs->count;
    kept->rooms = (room *)zeros(inputs->count, sizeof *kept->rooms);
    kept->step = (ansor_deploy_tensor *)zeros(inputs->count, sizeof *kept->step);
    kept->given = (ansor_deploy_input *)zeros(inputs->count, sizeof *kept->given);
    if (kept->rooms == NULL || kept->step == NULL || kept->given == NULL) return -1;
    int bad = read_size(map, "rows", &kept->rows) != 0 ||
              read_size(map, "tokens", &kept->tokens) != 0 ||
              read_text(map, "length", &name) != 0 ||
              find_tensor(inputs, name, &kept->length) != 0 ||
              read_rooms(map, "caches", read_cache, inputs, kept) != 0 ||
              read_rooms(map, "counted", read_counted, inputs, kept) != 0;
    free(name);
    for (size_t at = 0; !bad && at < inputs->count; at++) {
        const ansor_deploy_tensor *tensor = &inputs->items[at];
        const void *data = at == kept->length ? (void *)&kept->counted : kept->rooms[at].memory;
        ansor_deploy_input given = {tensor->dtype, data, tensor->bytes};
        kept->given[at] = given;
        if (at != kept->length && !kept->rooms[at].is_cache)
            kept->step[kept->step_inputs++] = *tensor;
    }
    return bad ? -1 : 0;
}

/* Nothing to do for a library without a context. */
static int read_context(TVMFFIAny map, const tensors *inputs, context *kept) {
    TVMFFIAny arguments[] = {map, text("context")}, part = value(kTVMFFINone), has;
    if (call_global("ffi.MapCount", arguments, 2, &has) != 0) return -1;
    if (has.v_int64 != 0 && call_global("ffi.MapGetItem", arguments, 2, &part) != 0) return -1;
    int bad = part.type_index == kTVMFFIMap && read_parts(part, inputs, kept) != 0;
    release(&part);
    return bad ? -1 : 0;
}

static void free_context(context *kept) {
    for (size_t at = 0; kept->rooms != NULL && at < kept->inputs; at++) free(kept->rooms[at].memory);
    free(kept->rooms);
    free(kept->step);
    free(kept->given);
}

/* Rows of an input as its caller has them, one behind another, to where there is room for all. */
static void spread(const room *to, const void *from, size_t rows) {
    for (size_t at = 0; at < to->outer; at++)
        memcpy(to->memory + at * to->rows * to->inner, (const char *)from + at * rows * to->inner,
               rows * to->inner);
}

static void clear(const room *one, size_t begin) {
    for (size_t at = 0; begin < one->rows && at < one->outer; at++)
        memset(one->memory + (at * one->rows + begin) * one->inner, 0,
               (one->rows - begin) * one->inner);
}

#endif

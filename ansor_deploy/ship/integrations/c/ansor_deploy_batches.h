/* Private to ansor_deploy.c: batches that there is no code for, in parts that there is code for. */
#ifndef ANSOR_DEPLOY_BATCHES_H
#define ANSOR_DEPLOY_BATCHES_H

#include "ansor_deploy_manifest.h"
#include "ansor_deploy_memory.h"

#define MOST_ROWS (1 << 24)
#define MOST_PART 1000000000
#define ROW 1000 /* what a row costs */

/* The rows of a variant. */
static int64_t rows_of(const manifest *declared, size_t variant) {
    const tensors *inputs = &declared->variants[variant].inputs;
    for (size_t at = 0; at < inputs->count; at++)
        if (declared->range.has_rows[at] && inputs->items[at].rank > 0)
            return inputs->items[at].shape[0];
    return 0;
}

static size_t row_bytes(const ansor_deploy_tensor *tensor, int64_t rows) {
    return tensor->bytes / (size_t)rows;
}

/* Of each number of rows that are left, the variant by which all of them cost least. */
static int plan_parts(manifest *declared) {
    batches *known = &declared->range;
    size_t most = (size_t)known->most;
    int64_t *costs = (int64_t *)zeros(most + 1, sizeof *costs);
    known->next = (size_t *)zeros(most + 1, sizeof *known->next);
    int bad = costs == NULL || known->next == NULL;
    for (size_t left = 1; !bad && left <= most; left++) {
        costs[left] = INT64_MAX;
        for (size_t at = declared->count; at-- > 0;) {
            int64_t size = rows_of(declared, at);
            size_t rest = left > (size_t)size ? left - (size_t)size : 0;
            int64_t cost = known->part + size * ROW + costs[rest];
            if (cost >= costs[left]) continue;
            costs[left] = cost;
            known->next[left] = at;
        }
    }
    free(costs);
    return bad ? -1 : 0;
}

static int read_rows(TVMFFIAny batch, const tensors *inputs, unsigned char *has_rows) {
    TVMFFIAny list;
    size_t count = 0;
    if (entry(batch, text("inputs"), kTVMFFIArray, &list) != 0) return -1;
    int bad = length(list, &count) != 0;
    for (size_t k = 0; !bad && k < count; k++) {
        TVMFFIAny arguments[] = {list, integer((int64_t)k)}, found;
        char *name = NULL;
        bad = call_global("ffi.ArrayGetItem", arguments, 2, &found) != 0;
        bad = bad || copy_text(found, "an input of batches", &name) != 0;
        for (size_t at = 0; !bad && at < inputs->count; at++)
            if (strcmp(inputs->items[at].name, name) == 0) has_rows[at] = 1;
        free(name);
        release(&found);
    }
    release(&list);
    return bad ? -1 : 0;
}

static int check_batches(const manifest *declared) {
    const batches *known = &declared->range;
    int bad = known->least < 1 || known->most < known->least || known->most > MOST_ROWS;
    bad = bad || known->part < 0 || known->part > MOST_PART;
    for (size_t at = 0; !bad && at < declared->count; at++)
        bad = rows_of(declared, at) < 1 || rows_of(declared, at) > known->most;
    return bad ? fail("its batches are impossible") : 0;
}

/* What a manifest says of batches; nothing where it does not. */
static int read_batches(TVMFFIAny map, manifest *declared) {
    batches *known = &declared->range;
    TVMFFIAny arguments[] = {map, text("batch")}, batch = value(kTVMFFINone), has;
    const tensors *inputs = &declared->variants[0].inputs;
    if (call_global("ffi.MapCount", arguments, 2, &has) != 0) return -1;
    if (has.v_int64 == 0) return 0;
    known->has_rows = (unsigned char *)zeros(inputs->count, 1);
    int bad = known->has_rows == NULL;
    bad = bad || read_number(map, "batch", "least", &known->least) != 0;
    bad = bad || read_number(map, "batch", "most", &known->most) != 0;
    bad = bad || read_number(map, "batch", "part", &known->part) != 0;
    bad = bad || entry(map, text("batch"), kTVMFFIMap, &batch) != 0;
    bad = bad || read_rows(batch, inputs, known->has_rows) != 0;
    release(&batch);
    return bad || check_batches(declared) != 0 ? -1 : plan_parts(declared);
}

/* What of a tensor belongs to a part: so many rows from a first on; all, if it has none. */
typedef struct {
    char *data;
    size_t row, bytes;
} stretch;

static stretch part_of(const void *data, const ansor_deploy_tensor *tensor, int64_t size,
                       int64_t first, int64_t rows) {
    size_t row = row_bytes(tensor, size);
    stretch made = {(char *)data + (size_t)first * row, row, (size_t)rows * row};
    return made;
}

/* Where rows are lacking, the last one is there again: it is as valid as that is. */
static int put_rows(argument *one, stretch given, size_t bytes) {
    int whole = given.bytes == bytes && suits(one, given.data);
    if (put(one, whole ? given.data : NULL, bytes) != 0) return -1;
    if (whole) return 0;
    copy(one->spare, given.data, given.bytes);
    for (size_t at = given.bytes; at < bytes; at += given.row)
        copy((char *)one->spare + at, given.data + given.bytes - given.row, given.row);
    return 0;
}

static int run_part(const manifest *declared, size_t variant, const runner *chosen, int64_t first,
                    int64_t rows, const ansor_deploy_input *inputs,
                    const ansor_deploy_output *outputs) {
    const interface *one = &declared->variants[variant];
    const size_t takes = one->inputs.count, gives = one->outputs.count;
    int64_t size = rows_of(declared, variant);
    argument *made = chosen->arguments + takes;
    TVMFFIAny result;
    for (size_t at = 0; at < takes; at++) {
        const ansor_deploy_tensor *tensor = &one->inputs.items[at];
        stretch all = {(char *)inputs[at].data, 0, tensor->bytes};
        int parted = declared->range.has_rows[at];
        stretch given = parted ? part_of(inputs[at].data, tensor, size, first, rows) : all;
        if (put_rows(&chosen->arguments[at], given, tensor->bytes) != 0) return -1;
    }
    for (size_t at = 0; at < gives; at++) {
        const ansor_deploy_tensor *tensor = &one->outputs.items[at];
        stretch wanted = part_of(outputs[at].data, tensor, size, first, rows);
        int whole = rows == size && suits(&made[at], wanted.data);
        if (put(&made[at], whole ? wanted.data : NULL, tensor->bytes) != 0) return -1;
    }
    if (call(chosen->main.v_obj, chosen->values, takes + gives, &result) != 0) return -1;
    release(&result);
    for (size_t at = 0; at < gives; at++) {
        stretch wanted = part_of(outputs[at].data, &one->outputs.items[at], size, first, rows);
        if (!made[at].borrowed) copy(wanted.data, made[at].spare, wanted.bytes);
    }
    return 0;
}

static int run_in_parts(const manifest *declared, const runner *runners, int64_t rows,
                        const ansor_deploy_input *inputs, const ansor_deploy_output *outputs) {
    for (int64_t first = 0; first < rows;) {
        size_t variant = declared->range.next[rows - first];
        int64_t size = rows_of(declared, variant), left = rows - first;
        int64_t taken = size < left ? size : left;
        if (run_part(declared, variant, &runners[variant], first, taken, inputs, outputs) != 0)
            return -1;
        first += taken;
    }
    return 0;
}

/* The rows of the first input that has any, by its size; 0 if there is none. */
static int64_t rows_given(const manifest *declared, const ansor_deploy_input *inputs,
                          size_t count) {
    const tensors *takes = &declared->variants[0].inputs;
    if (declared->range.most == 0) return 0;
    for (size_t at = 0; at < count && at < takes->count; at++)
        if (declared->range.has_rows[at] && takes->items[at].bytes > 0)
            return (int64_t)(inputs[at].bytes /
                             row_bytes(&takes->items[at], rows_of(declared, 0)));
    return 0;
}

static void free_apart(ansor_deploy_input *apart, const ansor_deploy_input *inputs, size_t count) {
    for (size_t at = 0; at < count; at++)
        if (apart[at].data != inputs[at].data) free((void *)apart[at].data);
    free(apart);
}

static int is_written(const ansor_deploy_input *input, const ansor_deploy_output *outputs,
                      size_t count) {
    for (size_t at = 0; at < count; at++)
        if (overlap(input->data, input->bytes, outputs[at].data, outputs[at].bytes)) return 1;
    return 0;
}

/* The inputs, with a copy of each that a part would write over before another reads it. */
static ansor_deploy_input *inputs_apart(const ansor_deploy_input *inputs, size_t count,
                                        const ansor_deploy_output *outputs, size_t output_count) {
    ansor_deploy_input *apart = (ansor_deploy_input *)zeros(count, sizeof *apart);
    if (apart == NULL) return NULL;
    copy(apart, inputs, count * sizeof *apart);
    for (size_t at = 0; at < count; at++) {
        if (!is_written(&inputs[at], outputs, output_count)) continue;
        void *copied = zeros(inputs[at].bytes, 1);
        if (copied == NULL) {
            free_apart(apart, inputs, count);
            return NULL;
        }
        copy(copied, inputs[at].data, inputs[at].bytes);
        apart[at].data = copied;
    }
    return apart;
}

/* What a batch's tensor has of bytes, with so many rows. */
static ansor_deploy_tensor with_rows(const manifest *declared, const ansor_deploy_tensor *tensor,
                                     int64_t rows) {
    ansor_deploy_tensor made = *tensor;
    made.bytes = row_bytes(tensor, rows_of(declared, 0)) * (size_t)rows;
    return made;
}

static int check_batch(const char *path, const manifest *declared, int64_t rows,
                       const ansor_deploy_input *inputs, size_t input_count,
                       const ansor_deploy_output *outputs, size_t output_count) {
    const batches *known = &declared->range;
    const tensors *takes = &declared->variants[0].inputs, *gives = &declared->variants[0].outputs;
    if (rows < known->least || rows > known->most)
        return fail("%s: it takes a batch of %lld to %lld rows; given %lld", path,
                    (long long)known->least, (long long)known->most, (long long)rows);
    if (input_count != takes->count || output_count != gives->count)
        return fail("%s: it has %zu inputs and %zu outputs; given %zu and %zu", path,
                    takes->count, gives->count, input_count, output_count);
    for (size_t at = 0; at < input_count; at++) {
        ansor_deploy_tensor all = takes->items[at];
        if (known->has_rows[at]) all = with_rows(declared, &all, rows);
        if (fits(path, &all, inputs[at].dtype, inputs[at].data, inputs[at].bytes)) return -1;
    }
    for (size_t at = 0; at < output_count; at++) {
        ansor_deploy_tensor all = with_rows(declared, &gives->items[at], rows);
        if (fits(path, &all, outputs[at].dtype, outputs[at].data, outputs[at].bytes)) return -1;
    }
    return 0;
}

static void free_batches(batches *known) {
    free(known->has_rows);
    free(known->next);
}

#endif

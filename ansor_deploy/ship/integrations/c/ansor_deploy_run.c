/* Run a library on raw files; also an example of ansor_deploy.h.
 *
 *     run LIBRARY                                   say what it takes and gives
 *     run [-v VARIANT] LIBRARY INPUT... OUTPUT...   run it once
 *
 * Each input has a file, and so has each output, in the order of the list: the bytes of the
 * elements as they lie in memory. VARIANT counts from 0, the first of the shapes that the library
 * was built for. Of a library with a context, the files of its caches are written to as well.
 */
#include "ansor_deploy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    return -1;
}

static void list(const char *kind, const ansor_deploy_tensor *tensors, size_t count) {
    for (size_t at = 0; at < count; at++) {
        printf("%s %s: %s[", kind, tensors[at].name, tensors[at].dtype);
        for (size_t axis = 0; axis < tensors[at].rank; axis++)
            printf("%s%lld", axis > 0 ? ", " : "", (long long)tensors[at].shape[axis]);
        printf("], %zu bytes\n", tensors[at].bytes);
    }
}

static void describe(const ansor_deploy_model *model) {
    size_t count, variants = ansor_deploy_variants(model);
    for (size_t at = 0; at < variants; at++) {
        if (variants > 1) printf("variant %zu\n", at);
        const ansor_deploy_tensor *tensors = ansor_deploy_variant_inputs(model, at, &count);
        list("input", tensors, count);
        tensors = ansor_deploy_variant_outputs(model, at, &count);
        list("output", tensors, count);
    }
}

/* All of a file, which has to have exactly so many bytes; NULL if it has not. */
static void *read_file(const char *path, size_t bytes) {
    char *data = (char *)malloc(bytes + 1);
    FILE *file = fopen(path, "rb");
    size_t have = data != NULL && file != NULL ? fread(data, 1, bytes + 1, file) : 0;
    int bad = data == NULL || file == NULL || ferror(file);
    if (bad) fail(path, strerror(errno));
    if (!bad && have != bytes) {
        fprintf(stderr, "%s: %zu bytes are needed, and it has %s\n", path, bytes,
                have < bytes ? "fewer" : "more");
        bad = 1;
    }
    if (file != NULL) fclose(file);
    if (!bad) return data;
    free(data);
    return NULL;
}

static int write_file(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) return fail(path, strerror(errno));
    int bad = fwrite(data, 1, bytes, file) != bytes;
    if (fclose(file) != 0) bad = 1;
    return bad ? fail(path, strerror(errno)) : 0;
}

static int run(ansor_deploy_model *model, const char *path, size_t variant, char **files,
               size_t count) {
    size_t takes, gives;
    const ansor_deploy_tensor *in = ansor_deploy_variant_inputs(model, variant, &takes);
    const ansor_deploy_tensor *out = ansor_deploy_variant_outputs(model, variant, &gives);
    if (out == NULL) return fail(path, "it has no such variant");
    if (count != takes + gives) {
        fprintf(stderr, "%s: name a file for each input and then for each output: %zu and %zu, not %zu\n",
                path, takes, gives, count);
        return -1;
    }
    ansor_deploy_input *inputs = (ansor_deploy_input *)calloc(takes + 1, sizeof *inputs);
    ansor_deploy_output *outputs = (ansor_deploy_output *)calloc(gives + 1, sizeof *outputs);
    int bad = inputs == NULL || outputs == NULL;
    for (size_t at = 0; !bad && at < takes; at++) {
        inputs[at].dtype = in[at].dtype;
        inputs[at].bytes = in[at].bytes;
        inputs[at].data = read_file(files[at], in[at].bytes);
        bad = inputs[at].data == NULL;
    }
    for (size_t at = 0; !bad && at < gives; at++) {
        outputs[at].dtype = out[at].dtype;
        outputs[at].bytes = out[at].bytes;
        outputs[at].data = malloc(out[at].bytes + 1);
        bad = outputs[at].data == NULL && fail(path, strerror(errno));
    }
    if (!bad && ansor_deploy_run_variant(model, variant, inputs, takes, outputs, gives) != 0)
        bad = fail("error", ansor_deploy_last_error());
    for (size_t at = 0; !bad && at < gives; at++)
        bad = write_file(files[takes + at], outputs[at].data, outputs[at].bytes) != 0;
    for (size_t at = 0; !bad && at < takes && ansor_deploy_context(model) > 0; at++)
        if (ansor_deploy_cache(model, in[at].name) != NULL)
            bad = write_file(files[at], inputs[at].data, inputs[at].bytes) != 0;
    for (size_t at = 0; inputs != NULL && at < takes; at++) free((void *)inputs[at].data);
    for (size_t at = 0; outputs != NULL && at < gives; at++) free(outputs[at].data);
    free(inputs);
    free(outputs);
    return bad ? -1 : 0;
}

int main(int count, char **words) {
    size_t variant = 0;
    int first = 1;
    if (count > 2 && strcmp(words[1], "-v") == 0) {
        variant = (size_t)strtoul(words[2], NULL, 10);
        first = 3;
    }
    if (count <= first) {
        fail("usage", "run [-v VARIANT] LIBRARY [INPUT... OUTPUT...]");
        return 2;
    }
    ansor_deploy_model *model = ansor_deploy_load(words[first]);
    int bad = model == NULL ? fail("error", ansor_deploy_last_error()) : 0;
    if (!bad && count == first + 1)
        describe(model);
    else if (!bad)
        bad = run(model, words[first], variant, words + first + 1, (size_t)(count - first - 1));
    ansor_deploy_free(model);
    return bad || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

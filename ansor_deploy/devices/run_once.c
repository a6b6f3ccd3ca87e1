/* Run a library once, for a machine that is emulated:
 *
 *     run-once LIBRARY INPUTS OUTPUTS VARIANT
 *
 * INPUTS holds the bytes of every input, one after the other; OUTPUTS gets those of the outputs.
 */
#include "ansor_deploy.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    return EXIT_FAILURE;
}

int main(int count, char **words) {
    if (count != 5) return fail("usage: run-once LIBRARY INPUTS OUTPUTS VARIANT");
    size_t variant = (size_t)strtoul(words[4], NULL, 10), takes = 0, gives = 0;
    ansor_deploy_model *model = ansor_deploy_load(words[1]);
    if (model == NULL) return fail(ansor_deploy_last_error());
    const ansor_deploy_tensor *in = ansor_deploy_variant_inputs(model, variant, &takes);
    const ansor_deploy_tensor *out = ansor_deploy_variant_outputs(model, variant, &gives);
    ansor_deploy_input *inputs = calloc(takes + 1, sizeof *inputs);
    ansor_deploy_output *outputs = calloc(gives + 1, sizeof *outputs);
    FILE *given = fopen(words[2], "rb"), *made = fopen(words[3], "wb");
    int bad = inputs == NULL || outputs == NULL || given == NULL || made == NULL;
    for (size_t at = 0; !bad && at < takes; at++) {
        void *data = malloc(in[at].bytes + 1);
        inputs[at] = (ansor_deploy_input){in[at].dtype, data, in[at].bytes};
        bad = data == NULL || fread(data, 1, in[at].bytes, given) != in[at].bytes;
    }
    for (size_t at = 0; !bad && at < gives; at++) {
        void *data = malloc(out[at].bytes + 1);
        outputs[at] = (ansor_deploy_output){out[at].dtype, data, out[at].bytes};
        bad = data == NULL;
    }
    if (bad) return fail("no memory, or a file that is not there or too short");
    if (ansor_deploy_run_variant(model, variant, inputs, takes, outputs, gives) != 0)
        return fail(ansor_deploy_last_error());
    for (size_t at = 0; !bad && at < gives; at++)
        bad = fwrite(outputs[at].data, 1, outputs[at].bytes, made) != outputs[at].bytes;
    return fclose(made) != 0 || bad ? fail("no space for the outputs") : EXIT_SUCCESS;
}

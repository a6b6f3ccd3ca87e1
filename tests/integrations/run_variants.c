/* run_variants LIBRARY: a library of two shapes, called by what is given and by the typed calls. */
#include <stdio.h>
#include <string.h>

#include "batches.h"

static float image[BATCHES_1_IN_X_COUNT], scores[BATCHES_1_OUT_Y_COUNT];

static void show(size_t count) {
    for (size_t at = 0; at < count; at++) printf("%.9g ", scores[at]);
    printf("\n");
}

/* The variant is chosen by the sizes. */
static int run(ansor_deploy_model *model, size_t takes, size_t gives) {
    ansor_deploy_input inputs[] = {{"float32", image, takes * sizeof(float)}};
    ansor_deploy_output outputs[] = {{"float32", scores, gives * sizeof(float)}};
    memset(scores, 0, sizeof scores);
    return ansor_deploy_run(model, inputs, 1, outputs, 1);
}

int main(int argc, char **argv) {
    ansor_deploy_model *model = argc == 2 ? batches_load(argv[1]) : NULL;
    size_t count;
    for (size_t at = 0; at < BATCHES_1_IN_X_COUNT; at++) image[at] = (float)(at % 7) - 3.0f;
    int bad = model == NULL || ansor_deploy_variants(model) != 2;
    bad = bad || ansor_deploy_variant_inputs(model, 1, &count)->shape[0] != 3;
    bad = bad || ansor_deploy_variant_inputs(model, 2, &count) != NULL || count != 0;
    bad = bad || run(model, BATCHES_IN_X_COUNT, BATCHES_OUT_Y_COUNT) != 0;
    if (!bad) show(BATCHES_OUT_Y_COUNT);
    bad = bad || run(model, BATCHES_1_IN_X_COUNT, BATCHES_1_OUT_Y_COUNT) != 0;
    if (!bad) show(BATCHES_1_OUT_Y_COUNT);
    bad = bad || batches_run(model, image, scores) != 0;
    if (!bad) show(BATCHES_OUT_Y_COUNT);
    bad = bad || batches_1_run(model, image, scores) != 0;
    if (!bad) show(BATCHES_1_OUT_Y_COUNT);
    if (bad) fprintf(stderr, "error: %s\n", ansor_deploy_last_error());
    bad = bad || run(model, 2 * BATCHES_IN_X_COUNT, 2 * BATCHES_OUT_Y_COUNT) == 0;
    if (!bad) printf("%s\n", ansor_deploy_last_error());
    bad = bad || ansor_deploy_run_variant(model, 2, NULL, 0, NULL, 0) == 0;
    if (!bad) printf("%s\n", ansor_deploy_last_error());
    ansor_deploy_free(model);
    return bad;
}

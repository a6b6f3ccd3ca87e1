/* run_batches LIBRARY: a batch of 1 to 7 rows, by the sizes of what is given and by typed calls. */
#include <stdio.h>
#include <string.h>

#include "batches.h"

#define MOST 7

static float images[MOST * (BATCHES_IN_X_COUNT + BATCHES_OUT_Y_COUNT)], scores[MOST * BATCHES_OUT_Y_COUNT];

static int run(ansor_deploy_model *model, size_t rows, float *result) {
    ansor_deploy_input inputs[] = {{"float32", images, rows * BATCHES_IN_X_COUNT * sizeof(float)}};
    ansor_deploy_output outputs[] = {{"float32", result, rows * BATCHES_OUT_Y_COUNT * sizeof(float)}};
    return ansor_deploy_run(model, inputs, 1, outputs, 1);
}

static void show(const float *numbers, size_t rows) {
    for (size_t at = 0; at < rows * BATCHES_OUT_Y_COUNT; at++) printf("%.9g ", numbers[at]);
    printf("\n");
}

static void fill(void) {
    for (size_t at = 0; at < MOST * BATCHES_IN_X_COUNT; at++) images[at] = (float)(at % 11) - 3.0f;
}

int main(int argc, char **argv) {
    ansor_deploy_model *model = argc == 2 ? batches_load(argv[1]) : NULL;
    int64_t least = 0, most = 0;
    int bad = model == NULL || ansor_deploy_batches(model, &least, &most) != 0;
    fill();
    bad = bad || least != 1 || most != MOST;
    for (size_t rows = 1; !bad && rows <= MOST; rows++) {
        bad = run(model, rows, scores) != 0;
        if (!bad) show(scores, rows);
        memset(scores, 0, sizeof scores);
        bad = bad || batches_run_batch(model, (int64_t)rows, images, scores) != 0;
        if (!bad) show(scores, rows);
    }
    /* Over its own input, which later parts have yet to read. */
    bad = bad || run(model, MOST, images) != 0;
    if (!bad) show(images, MOST);
    if (bad) fprintf(stderr, "error: %s\n", ansor_deploy_last_error());
    bad = bad || batches_run_batch(model, MOST + 1, images, scores) == 0;
    if (!bad) printf("%s\n", ansor_deploy_last_error());
    ansor_deploy_free(model);
    return bad;
}

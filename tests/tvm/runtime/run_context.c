/* Steps of a small Llama: two, with one in between that is forgotten; then what is refused. */
#include "llama.h"

#include <stdio.h>
#include <stdlib.h>

static float logits[LLAMA_OUT_LOGITS_COUNT];
static const int64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

static int step(ansor_deploy_model *model, int64_t token) {
    int64_t place = (int64_t)ansor_deploy_length(model);
    return llama_step(model, &token, ones, &place, logits);
}

/* With a mask of one token alone. */
static int short_step(ansor_deploy_model *model) {
    int64_t token = 7, place = (int64_t)ansor_deploy_length(model);
    ansor_deploy_input inputs[] = {{"int64", &token, 8}, {"int64", ones, 8}, {"int64", &place, 8}};
    ansor_deploy_output outputs[] = {{"float32", logits, sizeof logits}};
    return ansor_deploy_step(model, inputs, 3, outputs, 1);
}

static void show(const float *values, size_t count) {
    for (size_t at = 0; at < count; at++) printf("%.9g ", values[at]);
    printf("\n");
}

int main(int count, char **words) {
    size_t inputs;
    ansor_deploy_model *model = count > 1 ? llama_load(words[1]) : NULL;
    if (model == NULL || ansor_deploy_context(model) != 80) return 1;
    if (ansor_deploy_step_inputs(model, &inputs) == NULL || inputs != 3) return 2;
    if (step(model, 5) != 0 || step(model, 9) != 0) return 3;
    if (ansor_deploy_truncate(model, 1) != 0 || step(model, 6) != 0) return 4;
    show(logits, 50);
    show((const float *)ansor_deploy_cache(model, "past.0.key"), 2);
    if (short_step(model) == 0 || ansor_deploy_length(model) != 2) return 5;
    printf("%s\n", ansor_deploy_last_error());
    if (ansor_deploy_truncate(model, 9) == 0) return 6;
    printf("%s\n", ansor_deploy_last_error());
    if (ansor_deploy_cache(model, "input_ids") != NULL) return 7;
    printf("%s\n", ansor_deploy_last_error());
    ansor_deploy_free(model);
    return 0;
}

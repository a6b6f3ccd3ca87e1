/* Goes on from some tokens, with the likeliest each time: decode llama.so STEPS TOKEN...
 *
 * The library was built with --context, so that it keeps its caches from one step to the next.
 */
#include "ansor_deploy.h"

#include <stdio.h>
#include <stdlib.h>

/* The logits of the token behind the one at a place; NULL if there are none. */
static const float *step(ansor_deploy_model *model, int64_t token, int64_t place,
                         const int64_t *ones, float *logits, size_t bytes) {
    ansor_deploy_input inputs[] = {
        {"int64", &token, sizeof token},
        {"int64", ones, ((size_t)place + 1) * sizeof *ones}, /* the mask: of all tokens so far */
        {"int64", &place, sizeof place}};
    ansor_deploy_output outputs[] = {{"float32", logits, bytes}};
    return ansor_deploy_step(model, inputs, 3, outputs, 1) == 0 ? logits : NULL;
}

static int64_t likeliest(const float *logits, size_t count) {
    size_t best = 0;
    for (size_t at = 1; at < count; at++)
        if (logits[at] > logits[best]) best = at;
    return (int64_t)best;
}

static int decode(ansor_deploy_model *model, char **prompt, int64_t given, int64_t steps) {
    size_t count, rows = ansor_deploy_context(model);
    size_t bytes = ansor_deploy_outputs(model, &count)->bytes;
    float *logits = malloc(bytes);
    int64_t *ones = calloc(rows + 1, sizeof *ones), token = 0;
    int bad = logits == NULL || ones == NULL;
    for (size_t at = 0; !bad && at < rows; at++) ones[at] = 1;
    for (int64_t place = 0; !bad && place < given + steps - 1; place++) {
        if (place < given) token = strtoll(prompt[place], NULL, 10);
        printf("%lld ", (long long)token);
        bad = step(model, token, place, ones, logits, bytes) == NULL;
        token = likeliest(logits, bytes / sizeof *logits);
    }
    if (bad)
        fprintf(stderr, "%s\n", ansor_deploy_last_error());
    else
        printf("%lld\n", (long long)token);
    free(logits);
    free(ones);
    return bad;
}

int main(int count, char **words) {
    if (count < 4) {
        fprintf(stderr, "usage: decode LIBRARY STEPS TOKEN...\n");
        return 2;
    }
    ansor_deploy_model *model = ansor_deploy_load(words[1]);
    if (model == NULL) fprintf(stderr, "%s\n", ansor_deploy_last_error());
    int bad = model == NULL || decode(model, words + 3, count - 3, strtoll(words[2], NULL, 10));
    ansor_deploy_free(model);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

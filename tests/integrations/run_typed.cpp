// run_typed LIBRARY: the typed call of the generated header, from two threads, a model each.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "two-heads.h"

static_assert(TWO_HEADS_IN_IM_AGE_1_COUNT == 3 * 8 * 8, "elements, not bytes");

static void run(const char *path, float *scores, int64_t *best) {
    static float image[TWO_HEADS_IN_IM_AGE_1_COUNT];
    static const uint8_t chosen[TWO_HEADS_IN_SWITCH_COUNT] = {1, 0, 1, 1};
    for (int at = 0; at < TWO_HEADS_IN_IM_AGE_1_COUNT; at++) image[at] = at % 7 - 3.0f;
    ansor_deploy_model *model = two_heads_load(path);
    if (model == nullptr || two_heads_run(model, image, chosen, scores, best) != 0) {
        std::fprintf(stderr, "error: %s\n", ansor_deploy_last_error());
        std::exit(1);
    }
    ansor_deploy_free(model);
}

int main(int, char **argv) {
    float scores[2][TWO_HEADS_OUT_SCORES_COUNT];
    int64_t best[2][TWO_HEADS_OUT_1_COUNT];
    run(argv[1], scores[0], best[0]);
    std::thread other(run, argv[1], scores[1], best[1]);
    other.join();
    for (int at = 0; at < TWO_HEADS_OUT_SCORES_COUNT; at++) {
        if (scores[0][at] != scores[1][at]) return 3;
        std::printf("%.9g\n", scores[0][at]);
    }
    std::printf("%lld\n", static_cast<long long>(best[0][0]));
    return best[0][0] == best[1][0] ? 0 : 3;
}

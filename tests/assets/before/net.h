/* Written by ansor-deploy with the library net: its inputs, outputs and a typed call. */
#ifndef ANSOR_DEPLOY_MODEL_NET_H
#define ANSOR_DEPLOY_MODEL_NET_H

#include "ansor_deploy.h"

#define NET_IN_X_COUNT 256 /* elements of float32[8, 32], "x" */
#define NET_OUT_Y_COUNT 128 /* elements of float32[8, 16], "y" */

/* The library at a path; NULL if it cannot be loaded or has another interface than this. */
static inline ansor_deploy_model *net_load(const char *path) {
    static const int64_t in_x[] = {8, 32};
    static const int64_t out_y[] = {8, 16};
    static const ansor_deploy_tensor inputs[] = {
        {"x", "float32", 2, in_x, 256 * sizeof(float)}};
    static const ansor_deploy_tensor outputs[] = {
        {"y", "float32", 2, out_y, 128 * sizeof(float)}};
    ansor_deploy_model *model = ansor_deploy_load(path);
    if (model == NULL || ansor_deploy_expect(model, inputs, 1, outputs, 1) == 0)
        return model;
    ansor_deploy_free(model);
    return NULL;
}

/* Run once; 0, or -1 if it fails: ansor_deploy_last_error() says why. */
static inline int net_run(
    ansor_deploy_model *model,
    const float *in_x,
    float *out_y) {
    const ansor_deploy_input inputs[] = {
        {"float32", in_x, NET_IN_X_COUNT * sizeof(float)}};
    const ansor_deploy_output outputs[] = {
        {"float32", out_y, NET_OUT_Y_COUNT * sizeof(float)}};
    return ansor_deploy_run(model, inputs, 1, outputs, 1);
}

#endif

/* run_model LIBRARY FOLDER: runs it twice on FOLDER/in0, in1... and writes FOLDER/out0, out1... */
#include "ansor_deploy.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST 8

static FILE *open_file(const char *folder, const char *kind, size_t at, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%zu", folder, kind, at);
    return fopen(path, mode);
}

static void *read_input(const char *folder, size_t at, size_t bytes) {
    FILE *file = open_file(folder, "in", at, "rb");
    char *data = (char *)malloc(bytes + 2) + 1; /* off any alignment, on purpose */
    if (file == NULL || fread(data, 1, bytes, file) != bytes) exit(9);
    fclose(file);
    return data;
}

static int run(ansor_deploy_model *model, const char *folder) {
    ansor_deploy_input given[MOST];
    ansor_deploy_output taken[MOST];
    size_t inputs, outputs;
    const ansor_deploy_tensor *takes = ansor_deploy_inputs(model, &inputs);
    const ansor_deploy_tensor *gives = ansor_deploy_outputs(model, &outputs);
    for (size_t at = 0; at < inputs; at++) {
        given[at].dtype = takes[at].dtype;
        given[at].data = read_input(folder, at, takes[at].bytes);
        given[at].bytes = takes[at].bytes;
    }
    for (size_t at = 0; at < outputs; at++) {
        taken[at].dtype = gives[at].dtype;
        taken[at].data = malloc(gives[at].bytes);
        taken[at].bytes = gives[at].bytes;
    }
    int status = ansor_deploy_run(model, given, inputs, taken, outputs);
    if (status == 0) status = ansor_deploy_use_threads(model, 1);
    if (status == 0) status = ansor_deploy_run(model, given, inputs, taken, outputs);
    for (size_t at = 0; at < outputs; at++) {
        FILE *file = open_file(folder, "out", at, "wb");
        fwrite(taken[at].data, 1, taken[at].bytes, file);
        fclose(file);
        free(taken[at].data);
    }
    for (size_t at = 0; at < inputs; at++) free((char *)given[at].data - 1);
    return status;
}

/* Calls that cannot succeed: each has to say so, and to run nothing. */
static int misuse(ansor_deploy_model *model) {
    size_t inputs, outputs;
    const ansor_deploy_tensor *takes = ansor_deploy_inputs(model, &inputs);
    const ansor_deploy_tensor *gives = ansor_deploy_outputs(model, &outputs);
    ansor_deploy_input given[MOST] = {{NULL, NULL, 0}};
    ansor_deploy_output taken[MOST] = {{NULL, NULL, 0}};
    int accepted = ansor_deploy_run(model, given, inputs - 1, taken, outputs) == 0;
    printf("%s\n", ansor_deploy_last_error());
    for (size_t at = 0; at < inputs; at++) given[at].dtype = takes[at].dtype;
    for (size_t at = 0; at < inputs; at++) given[at].bytes = takes[at].bytes - 1;
    accepted |= ansor_deploy_run(model, given, inputs, taken, outputs) == 0;
    printf("%s\n", ansor_deploy_last_error());
    given[0].dtype = "int7";
    accepted |= ansor_deploy_run(model, given, inputs, taken, outputs) == 0;
    printf("%s\n", ansor_deploy_last_error());
    accepted |= ansor_deploy_expect(model, takes, inputs, gives, outputs - 1) == 0;
    printf("%s\n", ansor_deploy_last_error());
    accepted |= ansor_deploy_expect(model, gives, inputs, gives, outputs) == 0;
    printf("%s\n", ansor_deploy_last_error());
    accepted |= ansor_deploy_use_threads(model, 0) == 0;
    printf("%s\n", ansor_deploy_last_error());
    return accepted || ansor_deploy_expect(model, takes, inputs, gives, outputs) != 0;
}

int main(int argc, char **argv) {
    for (int loads = 0; argc == 3 && loads < 3; loads++) {
        ansor_deploy_model *model = ansor_deploy_load(argv[1]);
        int bad = model == NULL || misuse(model) || run(model, argv[2]);
        if (bad) fprintf(stderr, "error: %s\n", ansor_deploy_last_error());
        ansor_deploy_free(model);
        if (bad) return 1;
    }
    return argc == 3 ? 0 : 2;
}

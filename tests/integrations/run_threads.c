/* run_threads LIBRARY: runs it in four threads at once and in children that are forked meanwhile.
 * 0 where each has the same answer, or says why it has none. */
#define _GNU_SOURCE
#include "ansor_deploy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 8, THREADS = 4, RUNS = 200, CHILDREN = 10 };

static ansor_deploy_model *model;
static size_t inputs, outputs;
static const ansor_deploy_tensor *takes, *gives;
static void *wanted[MOST];

/* 0 where a run gives what the first gave. */
static int run(int is_first) {
    ansor_deploy_input given[MOST];
    ansor_deploy_output taken[MOST];
    for (size_t at = 0; at < inputs; at++) {
        given[at].dtype = takes[at].dtype;
        given[at].data = calloc(1, takes[at].bytes);
        given[at].bytes = takes[at].bytes;
    }
    for (size_t at = 0; at < outputs; at++) {
        taken[at].dtype = gives[at].dtype;
        taken[at].data = malloc(gives[at].bytes);
        taken[at].bytes = gives[at].bytes;
    }
    int bad = ansor_deploy_run(model, given, inputs, taken, outputs);
    for (size_t at = 0; at < outputs; at++) {
        if (is_first) wanted[at] = taken[at].data;
        else if (bad == 0 && memcmp(wanted[at], taken[at].data, gives[at].bytes) != 0) bad = 1;
        if (!is_first) free(taken[at].data);
    }
    for (size_t at = 0; at < inputs; at++) free((void *)given[at].data);
    return bad;
}

static void *many(void *failed) {
    for (int at = 0; at < RUNS; at++)
        if (run(0) != 0) *(int *)failed = 1;
    return NULL;
}

/* 0 where a child answers rightly, or says that it has to load the library again. */
static int fork_and_run(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20); /* one that hangs is killed */
        int bad = run(0);
        _exit(bad == 0 || (bad < 0 && strstr(ansor_deploy_last_error(), "load it again")) ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

int main(int count, char **words) {
    pthread_t threads[THREADS];
    int failed[THREADS] = {0}, bad = 0;
    if (count != 2 || (model = ansor_deploy_load(words[1])) == NULL) return 2;
    takes = ansor_deploy_inputs(model, &inputs);
    gives = ansor_deploy_outputs(model, &outputs);
    if (run(1) != 0) return 3;
    for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, many, &failed[at]);
    for (int at = 0; at < CHILDREN; at++) bad |= fork_and_run();
    for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    for (int at = 0; at < THREADS; at++) bad |= failed[at];
    for (size_t at = 0; at < outputs; at++) free(wanted[at]);
    ansor_deploy_free(model);
    if (bad) fprintf(stderr, "%s\n", ansor_deploy_last_error());
    return bad != 0;
}

/* run_threads LIBRARY N: runs it in four threads at once, and in as many of each of N children that
 * are forked meanwhile, and of others that are forked afterwards. 0 where each has the same
 * answer, or says why it has none. */
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
static int busy; /* whether other threads run it while a child is forked */
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

/* Answers rightly; or says that a thread ran the model at the fork, where that may be. */
static void *once(void *failed) {
    int bad = run(0);
    int excused = busy && bad < 0 && strstr(ansor_deploy_last_error(), "load it again");
    *(int *)failed = bad != 0 && !excused;
    return NULL;
}

typedef struct { pthread_t thread; int failed; } user;

static void start(user *users, void *(*what)(void *)) {
    for (int at = 0; at < THREADS; at++) {
        users[at].failed = 0;
        pthread_create(&users[at].thread, NULL, what, &users[at].failed);
    }
}

static int end(user *users) {
    int bad = 0;
    for (int at = 0; at < THREADS; at++) {
        pthread_join(users[at].thread, NULL);
        bad |= users[at].failed;
    }
    return bad;
}

/* 0 where all threads of a child do what they are to. */
static int fork_and_run(void) {
    pid_t child = fork();
    if (child == 0) {
        user users[THREADS];
        alarm(20); /* one that hangs is killed */
        start(users, once);
        _exit(end(users));
    }
    int status;
    waitpid(child, &status, 0);
    return status;
}

static int forks(int count) {
    int bad = 0;
    for (int at = 0; at < count; at++) bad |= fork_and_run();
    return bad;
}

int main(int count, char **words) {
    user users[THREADS];
    int bad;
    if (count != 3 || (model = ansor_deploy_load(words[1])) == NULL) return 2;
    takes = ansor_deploy_inputs(model, &inputs);
    gives = ansor_deploy_outputs(model, &outputs);
    if (run(1) != 0) return 3;
    start(users, many);
    busy = 1;
    bad = forks(atoi(words[2]));
    bad |= end(users);
    busy = 0;
    bad |= forks(CHILDREN);
    for (size_t at = 0; at < outputs; at++) free(wanted[at]);
    ansor_deploy_free(model);
    if (bad) fprintf(stderr, "%s\n", ansor_deploy_last_error());
    return bad != 0;
}

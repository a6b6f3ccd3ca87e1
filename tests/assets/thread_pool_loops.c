// Loops of several sizes from several threads, each element visited once; run with a sanitizer.
#define sched_getaffinity(process, size, mask) (mask[0] = 255, (long)(size)) // eight processors
#include "thread_pool.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread void *raised;
void TVMFFIErrorMoveFromRaised(void **error) { *error = raised, raised = 0; }
void TVMFFIErrorSetRaised(void *error) { raised = error; }
int TVMFFIObjectDecRef(void *object) { return object == 0; }

typedef struct { int extent, fails_at, *seen; } loop;

// As TVM generates it: this task's part of the extent.
static int visit(int id, environment *env, void *data) {
    loop *one = data;
    int step = (one->extent + env->count - 1) / env->count;
    for (int at = id * step; at < (id + 1) * step && at < one->extent; at++) {
        one->seen[at]++;
        if (at == one->fails_at) {
            raised = one;
            return -1;
        }
    }
    return 0;
}

static void check(int extent, int fails_at) {
    int *seen = calloc((size_t)extent + 1, sizeof *seen);
    loop one = {extent, fails_at, seen};
    int failed = ansor_deploy_launch(visit, &one, 0) != 0;
    if (failed != (fails_at >= 0 && fails_at < extent) || (failed && raised != &one)) {
        printf("%d of %d: failed %d, %p\n", fails_at, extent, failed, raised);
        exit(1);
    }
    raised = 0;
    for (int at = 0; !failed && at < extent; at++)
        if (seen[at] != 1) {
            printf("%d of %d: seen %d times\n", at, extent, seen[at]);
            exit(1);
        }
    free(seen);
}

static void *user(void *data) {
    unsigned random = (unsigned)(u64)data;
    for (int turn = 0; turn < 400; turn++) {
        random = random * 1664525 + 1013904223;
        check((int)(random >> 8) % 700, turn % 16 == 7 ? (int)(random >> 20) % 64 : -1);
        if (turn % 100 == 50)
            usleep(1000); // the others fall asleep meanwhile
    }
    return data;
}

int main(int count, char **arguments) {
    int users = atoi(arguments[1]);
    u64 threads[16];
    any number = {1, 0, count > 2 ? atoi(arguments[2]) : 4};
    __tvm_ffi_use_threads(0, &number, 1, 0);
    for (int at = 0; at < users; at++)
        pthread_create(&threads[at], 0, user, (void *)(u64)(at + 1));
    int pthread_join(u64, void **);
    for (int at = 0; at < users; at++) pthread_join(threads[at], 0);
    printf("%u threads\n", state.workers);
    return 0;
}

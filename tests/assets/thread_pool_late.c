// A thread that loses its processor in the middle of a task is benched, and comes back.
#define sched_getaffinity(process, size, mask) (mask[0] = 255, (long)(size)) // eight processors
#include "thread_pool.c"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void TVMFFIErrorMoveFromRaised(void **error) { *error = 0; }
void TVMFFIErrorSetRaised(void *error) { (void)error; }
int TVMFFIObjectDecRef(void *object) { return object == 0; }

u64 pthread_self(void);
static u64 caller;
static int lost_us, of_others; // how long a task takes that is not the caller's; such tasks

static int visit(int id, environment *env, void *data) {
    (void)id, (void)env, (void)data;
    int mine = pthread_self() == caller;
    if (!mine)
        add(of_others, 1);
    usleep((u32)(mine ? 20 : lost_us));
    return 0;
}

static int helped(void) {
    set(of_others, 0);
    ansor_deploy_launch(visit, 0, 0);
    return get(of_others);
}

static void until_helped(const char *when) {
    long until = now() + 30 * 1000000000L;
    while (!helped())
        if (now() > until) {
            printf("nobody came %s\n", when);
            exit(1);
        }
}

int main(void) {
    any number = {1, 0, 2};
    caller = pthread_self();
    __tvm_ffi_use_threads(0, &number, 1, 0);
    lost_us = 100 * 1000;
    until_helped("at first");
    lost_us = 20;
    for (int turn = 0; turn < 10; turn++)
        if (helped()) {
            printf("it came at once\n");
            return 1;
        }
    until_helped("again");
    return 0;
}

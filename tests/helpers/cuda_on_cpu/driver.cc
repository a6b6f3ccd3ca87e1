// A driver of CUDA without a GPU: kernels were compiled for this machine, and their threads are run
// in turn. What the driver is handed as code is the path of such a library.
//
// Each thread of a block has a stack. It runs until it waits for the others, at a barrier or to
// exchange values, and is taken up again when the others have come as far.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <vector>

struct dim3 {
    unsigned x, y, z;
};
extern "C" {
dim3 threadIdx, blockIdx;
int ansor_launches, ansor_live, ansor_modules; // what tests ask
char ansor_gpu[16];                             // the architecture of this "GPU"
}

namespace {
enum State { READY, WAITING, DONE };
enum { STACK = 256 << 10, MOST_ARGUMENTS = 24 };
struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    dim3 index;
    State state;
};
std::vector<Thread> threads;
std::vector<char> values; // what threads exchange, 8 bytes each
ucontext_t scheduler;
Thread *current;
void *called;
void *arguments[MOST_ARGUMENTS];

typedef void (*kernel)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                       void *, void *, void *, void *, void *, void *, void *, void *, void *,
                       void *, void *, void *, void *, void *, void *);

void body() {
    void **a = arguments;
    ((kernel)called)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                     a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22],
                     a[23]);
    current->state = DONE;
    swapcontext(&current->context, &scheduler);
}

void leave(State state) {
    current->state = state;
    swapcontext(&current->context, &scheduler);
}

void run_block() {
    for (Thread &one : threads) {
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.data();
        one.context.uc_stack.ss_size = one.stack.size();
        one.context.uc_link = &scheduler;
        makecontext(&one.context, body, 0);
        one.state = READY;
    }
    for (size_t left = threads.size(); left;) {
        size_t waiting = 0;
        left = 0;
        for (Thread &one : threads) {
            if (one.state == READY) {
                current = &one;
                threadIdx = one.index;
                swapcontext(&scheduler, &one.context);
            }
            left += one.state != DONE;
            waiting += one.state == WAITING;
        }
        if (waiting == left)
            for (Thread &one : threads)
                if (one.state == WAITING)
                    one.state = READY;
    }
}
} // namespace

extern "C" {
void __syncthreads() { leave(WAITING); }

// Hand a value to whoever asks for this thread's, and take another's of the same warp.
void ansor_exchange(const void *value, unsigned lane, void *other, unsigned size) {
    size_t me = current - threads.data(), first = me / 32 * 32;
    memcpy(&values[me * 8], value, size);
    leave(READY);
    if (first + lane < threads.size())
        memcpy(other, &values[(first + lane) * 8], size);
    leave(READY);
}

int cuInit(unsigned) { return *ansor_gpu ? 0 : 100; }
int cuDeviceGet(int *device, int) { return *device = 0; }
int cuDevicePrimaryCtxRetain(void **context, int) {
    *context = &scheduler;
    return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void *) { return 0; }
int cuCtxPopCurrent_v2(void **) { return 0; }
int cuGetErrorString(int status, const char **text) {
    *text = status == 100 ? "no CUDA-capable device is detected" : "an error of the driver";
    return 0;
}
int cuModuleLoadData(void **module, const char *path) {
    if (strncmp(path, ansor_gpu, strlen(ansor_gpu)) != 0)
        return 209;
    *module = dlopen(path + strlen(ansor_gpu), RTLD_NOW);
    ansor_modules += *module != 0;
    if (!*module)
        fprintf(stderr, "%s\n", dlerror());
    return *module ? 0 : 200;
}
int cuModuleUnload(void *) { return ansor_modules--, 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = dlsym(module, name);
    return *function ? 0 : 500;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
    void *memory = 0;
    if (posix_memalign(&memory, 256, size))
        return 2;
    memset(memory, 0xff, size); // of floats: NaN
    *address = (uint64_t)memory;
    ansor_live++;
    return 0;
}
int cuMemFree_v2(uint64_t address) {
    free((void *)address);
    ansor_live--;
    return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    memcpy(to, (void *)from, size);
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *, void **given, void **) {
    Dl_info where;
    char name[300];
    if (!dladdr(function, &where) || shared || bx * by * bz > 1024 || gy > 65535 || gz > 65535)
        return 1;
    snprintf(name, sizeof name, "%s_arguments", where.dli_sname);
    const int *count = (const int *)dlsym(dlopen(where.dli_fname, RTLD_NOW), name);
    if (!count || *count > MOST_ARGUMENTS)
        return 1;
    for (int at = 0; at < *count; at++)
        arguments[at] = *(void **)given[at];
    called = function;
    ansor_launches++;
    if (threads.size() < bx * by * bz)
        threads.resize(bx * by * bz);
    threads.resize(bx * by * bz);
    values.resize(threads.size() * 8);
    for (unsigned at = 0; at < threads.size(); at++) {
        threads[at].stack.resize(STACK);
        threads[at].index = {at % bx, at / bx % by, at / bx / by};
    }
    for (unsigned z = 0; z < gz; z++)
        for (unsigned y = 0; y < gy; y++)
            for (unsigned x = 0; x < gx; x++) {
                blockIdx = {x, y, z};
                run_block();
            }
    return 0;
}
}

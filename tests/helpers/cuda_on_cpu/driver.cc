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
#include <time.h>
#include <ucontext.h>

#include <vector>

struct dim3 {
    unsigned x, y, z;
};
extern "C" {
dim3 threadIdx, blockIdx;
int ansor_launches, ansor_live, ansor_modules; // what tests ask
int ansor_graphs, ansor_waits, ansor_records = 1; // how many; whether streams may be recorded
void *ansor_stream;                            // of the last copy
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
// What was launched while a stream was recorded.
struct Launched {
    void *function;
    dim3 grid, block;
    std::vector<void *> given;
};
typedef std::vector<Launched> Graph;
Graph *recorded; // of the stream that is recorded, if one is
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

// Of a process of its own, the environment says which GPU it has.
int cuInit(unsigned) {
    const char *named = getenv("ANSOR_GPU");
    if (named)
        snprintf(ansor_gpu, sizeof ansor_gpu, "%s", named);
    return *ansor_gpu ? 0 : 100;
}
int cuDeviceGetName(char *name, int size, int) {
    snprintf(name, size, "A processor, thread by thread");
    return 0;
}
int cuDriverGetVersion(int *version) { return *version = 12090, 0; }
int cuDeviceGetAttribute(int *value, int which, int) {
    int arch = atoi(ansor_gpu + strlen("sm_"));
    *value = which == 16 ? 80 : which == 75 ? arch / 10 : arch % 10;
    return 0;
}
int cuCtxSynchronize() { return 0; }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t size) {
    memset((void *)to, value, size);
    return 0;
}
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
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
    ansor_stream = stream;
    memcpy((void *)to, (void *)from, size);
    return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    memcpy(to, (void *)from, size);
    return 0;
}

static int run(const Launched &launch) {
    dim3 grid = launch.grid, block = launch.block;
    unsigned count = block.x * block.y * block.z;
    for (size_t at = 0; at < launch.given.size(); at++)
        arguments[at] = launch.given[at];
    called = launch.function;
    ansor_launches++;
    threads.resize(count);
    values.resize(count * 8);
    for (unsigned at = 0; at < count; at++) {
        threads[at].stack.resize(STACK);
        threads[at].index = {at % block.x, at / block.x % block.y, at / block.x / block.y};
    }
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                run_block();
            }
    return 0;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **given, void **) {
    Dl_info where;
    char name[300];
    if (!dladdr(function, &where) || shared || bx * by * bz > 1024 || gy > 65535 || gz > 65535)
        return 1;
    snprintf(name, sizeof name, "%s_arguments", where.dli_sname);
    const int *count = (const int *)dlsym(dlopen(where.dli_fname, RTLD_NOW), name);
    if (!count || *count > MOST_ARGUMENTS)
        return 1;
    Launched launch = {function, {gx, gy, gz}, {bx, by, bz}, {}};
    for (int at = 0; at < *count; at++)
        launch.given.push_back(*(void **)given[at]);
    if (!recorded || !stream)
        return recorded ? 906 : run(launch); // 906: not while a stream is recorded
    recorded->push_back(launch);
    return 0;
}

// What is launched on a stream may be recorded; then it is not run, but can be, as a whole.

int cuStreamCreate(void **stream, unsigned) { return *stream = new int, 0; }
int cuStreamDestroy_v2(void *stream) { return delete (int *)stream, 0; }
int cuStreamSynchronize(void *) { return ansor_waits++, 0; }
int cuStreamWaitEvent(void *, void *, unsigned) { return 0; }
int cuStreamBeginCapture_v2(void *, int) {
    recorded = ansor_records ? new Graph : 0;
    return ansor_records ? 0 : 801; // 801: not supported
}
int cuStreamEndCapture(void *, void **graph) {
    *graph = recorded;
    recorded = 0;
    return 0;
}
int cuGraphInstantiateWithFlags(void **whole, void *graph, unsigned long long) {
    *whole = new Graph(*(Graph *)graph);
    return 0;
}
int cuGraphLaunch(void *whole, void *) {
    ansor_graphs++;
    for (const Launched &one : *(Graph *)whole)
        run(one);
    return 0;
}
int cuGraphExecDestroy(void *whole) { return delete (Graph *)whole, 0; }
int cuGraphDestroy(void *graph) { return delete (Graph *)graph, 0; }

// An event is when it was recorded, in nanoseconds: what was launched before has run.
int cuEventCreate(void **event, unsigned) { return *event = new timespec, 0; }
int cuEventDestroy_v2(void *event) { return delete (timespec *)event, 0; }
int cuEventRecord(void *event, void *) {
    return clock_gettime(CLOCK_MONOTONIC, (timespec *)event);
}
int cuEventSynchronize(void *) { return 0; }
int cuEventElapsedTime(float *milliseconds, void *begun, void *ended) {
    timespec a = *(timespec *)begun, b = *(timespec *)ended;
    *milliseconds = (b.tv_sec - a.tv_sec) * 1e3 + (b.tv_nsec - a.tv_nsec) / 1e6;
    return 0;
}
}

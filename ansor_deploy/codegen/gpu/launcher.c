// What a library for a GPU does on the host: it loads kernels and weights once, and runs them.
//
// NVIDIA's driver is found when a library is loaded, not when it is linked: a build needs neither a
// GPU nor its libraries, and where there is none the error is a sentence. The program, which
// gpu_program.py writes, lies in the library; its words are the structures below.
//
// All that load a library in one process share one state, of which one run at a time has the
// memory: it ends with the last of them.
//
// A run goes to the stream that its caller has in this thread (TVMFFIEnvSetStream; that of
// PyTorch, in `with tvm_ffi.use_torch_stream()`), else to the driver's default one. It is waited
// for, unless all of its tensors lie on the GPU. Kernels are launched one by one in the first run,
// which loads their code, and as one graph from then on.
//
// launcher.ll is made of this file by `python docs/make_llvm.py`; see thread_pool.c.

typedef unsigned int u32;
typedef unsigned long u64;
typedef unsigned char u8;

// Of the C library.
typedef struct { _Alignas(16) char bytes[64]; } opaque; // zeros are a valid mutex
int pthread_mutex_lock(opaque *), pthread_mutex_unlock(opaque *);
void *dlopen(const char *name, int flags), *dlsym(void *library, const char *name);
void *calloc(u64 count, u64 size);
void free(void *memory);
int snprintf(char *to, u64 size, const char *format, ...);
enum { NOW = 2 }; // RTLD_NOW

// Of DLPack and tvm-ffi (dlpack/dlpack.h, tvm/ffi/c_api.h).
typedef struct {
    void *data;
    int device_type, device_id, rank;
    u8 code, bits;
    unsigned short lanes;
    long *shape, *strides;
    u64 offset;
} tensor;
typedef struct managed { tensor tensor; void *context; void (*deleter)(struct managed *); } managed;
typedef struct { int type, zero; void *object; } any;
enum { TENSOR = 70, HEADER = 24, CPU = 1, CUDA = 2, UINT = 1 }; // HEADER: before an object's tensor
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFITensorFromDLPack(managed *from, int alignment, int contiguous, void **out);
void *TVMFFIEnvGetStream(int device_type, int device_id);

// Of CUDA's driver: handles are pointers, addresses of the device numbers.
typedef struct {
    int (*init)(u32), (*device)(int *, int), (*retain)(void **, int), (*release)(int);
    int (*push)(void *), (*pop)(void **), (*load)(void **, const void *), (*unload)(void *);
    int (*function)(void **, void *, const char *), (*alloc)(u64 *, u64), (*release_memory)(u64);
    int (*send)(u64, const void *, u64), (*copy)(u64, u64, u64, void *), (*name)(int, const char **);
    int (*launch)(void *, u32, u32, u32, u32, u32, u32, u32, void *, void **, void **);
    int (*stream)(void **, u32), (*no_stream)(void *), (*wait)(void *);
    int (*record)(void *, int), (*recorded)(void *, void **), (*whole)(void **, void *, u64);
    int (*start)(void *, void *), (*no_whole)(void *), (*no_graph)(void *);
    int (*event)(void **, u32), (*no_event)(void *), (*mark)(void *, void *);
    int (*after)(void *, void *, u32), (*wait_event)(void *);
} driver;
static const char *const names[] = {
    "cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuModuleLoadData", "cuModuleUnload",
    "cuModuleGetFunction", "cuMemAlloc_v2", "cuMemFree_v2",
    "cuMemcpyHtoD_v2", "cuMemcpyAsync", "cuGetErrorString",
    "cuLaunchKernel",
    "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize",
    "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags",
    "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
    "cuEventCreate", "cuEventDestroy_v2", "cuEventRecord",
    "cuStreamWaitEvent", "cuEventSynchronize",
};
enum { FUNCTIONS = sizeof(names) / sizeof(names[0]) };
_Static_assert(sizeof(driver) == FUNCTIONS * sizeof(void *), "a name for each function");
enum { NO_BINARY_FOR_GPU = 209 };
enum { APART = 1, RELAXED = 2, UNTIMED = 2 }; // of a stream, of its recording, of an event

// The program. at: index of the first word; texts and code: bytes from the content's beginning.
typedef struct { u64 at, count; } table;
typedef struct {
    u64 version, weights, memory; // the latter in bytes
    u64 arch, words, content;
    table modules, launches, runs;
} program;
typedef struct { u64 cubin, ptx; } code;
// Without a grid, its one argument must hold a zero, or the name says what is wrong.
typedef struct { u64 module, name, grid[3], block[3], arguments, count; } launch;
typedef struct { u64 first, count, inputs, input_count, outputs, output_count; } run;
typedef struct { u64 address, bytes; } place;
extern const program ansor_deploy_gpu_program;
#define own (&ansor_deploy_gpu_program)
#define IN_MEMORY (1ul << 63)

static struct {
    opaque mutex;
    u32 users;
    int device;
    void *context, **modules, **functions;
    u64 weights, memory;
    // To record on. done: when the run that nobody waited for has ended, if pending.
    void *stream, *done;
    int pending;
    // Of the launches that follow each other without a check, by the first: how often they ran, up
    // to two, and what they are as a whole, if they are.
    struct { int runs; void *whole; } *together;
} state;
static driver cuda;

static const u64 *words(u64 at) { return (const u64 *)own + at; }
static const char *content(u64 at) { return (const char *)words(own->content) + at; }
static u64 device_address(u64 place) {
    return place & IN_MEMORY ? state.memory + (place & ~IN_MEMORY) : state.weights + place;
}

static int fail(const char *what, const char *why) {
    char text[512];
    snprintf(text, sizeof text, "%s: %s", what, why);
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", text);
    return -1;
}

static int failed(const char *what, int status) {
    const char *why = 0;
    if (cuda.name(status, &why) != 0 || !why)
        why = "an error that the driver has no words for";
    return fail(what, why);
}
#define TRY(what, call) \
    do { \
        int failure = (call); \
        if (failure) \
            return failed(what, failure); \
    } while (0)

static int find_driver(void) {
    void *library = dlopen("libcuda.so.1", NOW);
    if (!library)
        return fail("this library needs an NVIDIA GPU",
                    "there is no driver here (libcuda.so.1 cannot be loaded)");
    for (int at = 0; at < FUNCTIONS; at++)
        if (!(((void **)&cuda)[at] = dlsym(library, names[at])))
            return fail("the NVIDIA driver is too old: it lacks", names[at]);
    return 0;
}

// Code for this GPU, or what the driver compiles for a newer one.
static int load_modules(void) {
    const code *codes = (const code *)words(own->modules.at);
    for (u64 at = 0; at < own->modules.count; at++) {
        int status = cuda.load(&state.modules[at], content(codes[at].cubin));
        if (status == NO_BINARY_FOR_GPU)
            status = cuda.load(&state.modules[at], content(codes[at].ptx));
        if (status == NO_BINARY_FOR_GPU)
            return fail("this GPU is older than the library's", content(own->arch));
        TRY("a kernel cannot be loaded", status);
    }
    const launch *launches = (const launch *)words(own->launches.at);
    for (u64 at = 0; at < own->launches.count; at++)
        if (launches[at].grid[0])
            TRY("a kernel is not there", cuda.function(&state.functions[at],
                                                       state.modules[launches[at].module],
                                                       content(launches[at].name)));
    return 0;
}

static int fill(const void *weights) {
    TRY("no device memory for the weights", cuda.alloc(&state.weights, own->weights));
    TRY("no device memory for the tensors", cuda.alloc(&state.memory, own->memory));
    TRY("the weights cannot be copied", cuda.send(state.weights, weights, own->weights));
    TRY("the weights cannot be copied", cuda.wait(0)); // by streams that wait for no other
    TRY("the GPU has no stream", cuda.stream(&state.stream, APART));
    TRY("the GPU has no event", cuda.event(&state.done, UNTIMED));
    return load_modules();
}

// Give back whatever there is.
static void clear(void) {
    void *before;
    if (state.context && cuda.push(state.context) == 0) {
        if (state.pending)
            cuda.wait_event(state.done);
        for (u64 at = 0; state.together && at < own->launches.count; at++)
            if (state.together[at].whole)
                cuda.no_whole(state.together[at].whole);
        if (state.stream)
            cuda.no_stream(state.stream);
        if (state.done)
            cuda.no_event(state.done);
        for (u64 at = 0; state.modules && at < own->modules.count; at++)
            if (state.modules[at])
                cuda.unload(state.modules[at]);
        if (state.weights)
            cuda.release_memory(state.weights);
        if (state.memory)
            cuda.release_memory(state.memory);
        cuda.pop(&before);
    }
    if (state.context)
        cuda.release(state.device);
    free(state.modules);
    free(state.functions);
    free(state.together);
    state.context = state.modules = state.functions = state.stream = state.done = 0;
    state.together = 0;
    state.weights = state.memory = 0;
    state.pending = 0;
}

static int start(const void *weights) {
    if (find_driver() != 0)
        return -1;
    TRY("the NVIDIA driver does not start", cuda.init(0));
    TRY("there is no GPU", cuda.device(&state.device, 0));
    TRY("the GPU cannot be used", cuda.retain(&state.context, state.device));
    state.modules = calloc(own->modules.count + 1, sizeof(void *));
    state.functions = calloc(own->launches.count + 1, sizeof(void *));
    state.together = calloc(own->launches.count + 1, sizeof(*state.together));
    if (!state.modules || !state.functions || !state.together)
        return fail("the library cannot be loaded", "no memory");
    TRY("the GPU cannot be used", cuda.push(state.context));
    int status = fill(weights);
    void *before;
    cuda.pop(&before);
    return status;
}

// One user less.
static void leave(managed *handle) {
    pthread_mutex_lock(&state.mutex);
    if (--state.users == 0)
        clear();
    pthread_mutex_unlock(&state.mutex);
    free(handle);
}

static long one = 1;

static tensor *tensor_of(const any *argument) {
    return (tensor *)((char *)argument->object + HEADER);
}

static char *begin(const any *argument) {
    tensor *of = tensor_of(argument);
    return (char *)of->data + of->offset;
}

// load(block) -> a tensor that holds the state: whoever has it may run.
int __tvm_ffi_ansor_deploy_gpu_load(void *self, const any *arguments, int count, any *result) {
    (void)self;
    if (count != 1 || arguments[0].type != TENSOR)
        return fail("the weights cannot be copied", "they are no tensor");
    managed *handle = calloc(1, sizeof(managed));
    if (!handle)
        return fail("the library cannot be loaded", "no memory");
    pthread_mutex_lock(&state.mutex);
    int status = state.users ? 0 : start(begin(&arguments[0]));
    if (status != 0)
        clear();
    else
        state.users++;
    pthread_mutex_unlock(&state.mutex);
    if (status != 0) {
        free(handle);
        return status;
    }
    handle->tensor = (tensor){&state, CPU, 0, 1, UINT, 8, 1, &one, &one, 0};
    handle->deleter = leave;
    result->type = TENSOR;
    return TVMFFITensorFromDLPack(handle, 0, 0, &result->object);
}

static int check(const char *what, u64 place, void *stream) {
    int faults = 0;
    TRY("the indices cannot be checked",
        cuda.copy((u64)&faults, device_address(place), sizeof faults, stream));
    TRY("a kernel failed", cuda.wait(stream));
    if (faults)
        TVMFFIErrorSetRaisedFromCStr("IndexError", what);
    return faults ? -1 : 0;
}

static const launch *launch_at(u64 at) { return (const launch *)words(own->launches.at) + at; }

static int start_kernel(u64 at, void *stream) {
    const launch *this = launch_at(at);
    const u64 *places = words(own->words + this->arguments);
    u64 addresses[this->count + 1];
    void *given[this->count + 1];
    for (u64 k = 0; k < this->count; k++) {
        addresses[k] = device_address(places[k]);
        given[k] = &addresses[k];
    }
    return cuda.launch(state.functions[at], this->grid[0], this->grid[1], this->grid[2],
                       this->block[0], this->block[1], this->block[2], 0, stream, given, 0);
}

// Kernels as one graph; 0 where the driver makes none of them.
static void *recorded(u64 from, u64 to) {
    void *graph = 0, *whole = 0;
    if (cuda.record(state.stream, RELAXED) != 0)
        return 0;
    int status = 0;
    for (u64 at = from; at < to && status == 0; at++)
        status = start_kernel(at, state.stream);
    if (cuda.recorded(state.stream, &graph) != 0 || !graph)
        return 0;
    if (status != 0 || cuda.whole(&whole, graph, 0) != 0)
        whole = 0;
    cuda.no_graph(graph);
    return whole;
}

static int start_together(u64 from, u64 to, void *stream) {
    if (to - from > 1 && state.together[from].runs < 2 && state.together[from].runs++ == 1)
        state.together[from].whole = recorded(from, to);
    if (state.together[from].whole) {
        TRY("the kernels cannot be started", cuda.start(state.together[from].whole, stream));
        return 0;
    }
    for (u64 at = from; at < to; at++)
        TRY(content(launch_at(at)->name), start_kernel(at, stream));
    return 0;
}

static int start_kernels(const run *this, void *stream) {
    u64 end = this->first + this->count;
    for (u64 from = this->first, to; from < end; from = to) {
        const launch *first = launch_at(from);
        for (to = from; to < end && launch_at(to)->grid[0];)
            to++;
        if (to == from) {
            if (check(content(first->name), words(own->words + first->arguments)[0], stream) != 0)
                return -1;
            to++;
        } else if (start_together(from, to, stream) != 0) {
            return -1;
        }
    }
    return 0;
}

static int run_once(const run *this, const any *tensors, void *stream) {
    const place *inputs = (const place *)words(own->words + this->inputs);
    const place *outputs = (const place *)words(own->words + this->outputs);
    for (u64 at = 0; at < this->input_count; at++, tensors++)
        if (inputs[at].bytes)
            TRY("an input cannot be copied",
                cuda.copy(device_address(inputs[at].address), (u64)begin(tensors),
                          inputs[at].bytes, stream));
    if (start_kernels(this, stream) != 0)
        return -1;
    for (u64 at = 0; at < this->output_count; at++, tensors++)
        if (outputs[at].bytes)
            TRY("an output cannot be copied",
                cuda.copy((u64)begin(tensors), device_address(outputs[at].address),
                          outputs[at].bytes, stream));
    return 0;
}

// A run after the one before, whichever stream that has; its end is waited for or marked.
static int run_in_turn(const run *this, const any *tensors) {
    void *stream = TVMFFIEnvGetStream(CUDA, state.device);
    u64 count = this->input_count + this->output_count;
    int on_gpu = 1;
    for (u64 at = 0; at < count; at++)
        on_gpu &= tensor_of(&tensors[at])->device_type == CUDA;
    if (state.pending)
        TRY("the run before is not waited for", cuda.after(stream, state.done, 0));
    int status = run_once(this, tensors, stream);
    state.pending = on_gpu && cuda.mark(state.done, stream) == 0;
    if (!state.pending) {
        int failure = cuda.wait(stream);
        if (status == 0 && failure)
            return failed("a kernel failed", failure);
    }
    return status;
}

// run(state, number, inputs and outputs of the function of that number)
int __tvm_ffi_ansor_deploy_gpu_run(void *self, const any *arguments, int count, any *result) {
    (void)self, (void)result;
    u64 number = count > 1 ? (u64)arguments[1].object : own->runs.count;
    if (number >= own->runs.count)
        return fail("the library cannot be run", "there is no such function");
    const run *this = (const run *)words(own->runs.at) + number;
    if ((u64)count != 2 + this->input_count + this->output_count)
        return fail("the library cannot be run", "a wrong number of tensors");
    pthread_mutex_lock(&state.mutex);
    void *before;
    int status = cuda.push(state.context);
    if (status != 0) {
        status = failed("the GPU cannot be used", status);
    } else {
        status = run_in_turn(this, arguments + 2);
        cuda.pop(&before);
    }
    pthread_mutex_unlock(&state.mutex);
    return status;
}

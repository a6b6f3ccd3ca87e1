// The threads of a library: they take tasks of a parallel loop as they come to them.
//
// TVM's pool hands each thread its part, and waits for all of them. Where a thread has no processor,
// since another program or another model has it, a loop of microseconds takes a scheduler's
// milliseconds. Here the thread that has the loop is never in need of the others: whoever is there
// takes what is left, and only those who are in the middle of a task are waited for.
//
// A loop's tasks are cut into chunks, so many for each thread. A thread begins with its own, which
// are the same in every loop, so that rows stay in its cache; then it takes the others'. A thread
// without work spins for SPIN_NS, as the next kernel is mostly near, and then sleeps.
//
// Where all other processors are busy, the system wakes a thread on its caller's, and each keeps the
// other from its work. So none stays there: it forbids itself that processor, or, where it did so
// just before, leaves the loop to those who are elsewhere. A thread that loses its processor in the
// middle of a task keeps all others waiting: it notices how long, and stays away for BENCHED times
// that, so that what it costs stays small beside what it saves.
//
// All libraries of a process share one pool (`pool_state` is unique in it). Of two threads that want
// it at once, one has it, and the other runs its loop alone.
//
// thread_pool.ll is made of this file by `python docs/make_llvm.py`, for any
// architecture whose pointers have 64 bits: so nothing here may depend on one.

typedef unsigned int u32;
typedef unsigned long u64;

// Of the C library, whatever its version: zeros are a valid mutex and a valid condition.
typedef struct { _Alignas(16) char bytes[64]; } opaque;
typedef struct { long seconds, nanoseconds; } timespec;
int pthread_create(u64 *thread, void *attributes, void *(*run)(void *), void *data);
int pthread_detach(u64 thread);
int pthread_mutex_lock(opaque *), pthread_mutex_unlock(opaque *);
int pthread_cond_wait(opaque *, opaque *), pthread_cond_broadcast(opaque *);
int clock_gettime(int clock, timespec *), nanosleep(const timespec *, timespec *);
int sched_yield(void);
int (sched_getaffinity)(int thread, u64 size, u64 *mask);
int sched_setaffinity(int thread, u64 size, const u64 *mask);
int sched_getcpu(void);

// Of tvm-ffi: an error belongs to the thread that it came up in.
void TVMFFIErrorMoveFromRaised(void **error);
void TVMFFIErrorSetRaised(void *error);
int TVMFFIObjectDecRef(void *object);

// As TVM generates parallel loops (include/tvm/runtime/c_backend_api.h): task `id` of `count` runs
// its part of the iterations.
typedef struct { void *barrier; int count; } environment;
typedef int (*body)(int id, environment *, void *data);

enum { MOST_THREADS = 256, CHUNKS = 16, MONOTONIC = 1 };
enum { SPIN_NS = 100 * 1000, PATIENCE_NS = 1000 * 1000, SETTLED_NS = 10 * 1000 * 1000 };
enum { LATE_NS = 300 * 1000, BENCHED = 10 };
enum { MASK_WORDS = 128 }; // of a set of processors
// Of a line that one thread writes and others read: processors fetch lines in pairs.
#define ALONE _Alignas(128)
#define OPEN 0x80000000u // of `doors`: threads may come in; the other bits: how many are in

typedef struct { ALONE u32 next; u32 end; } share; // of a thread: chunks that nobody has

typedef struct {
    ALONE u32 taken;    // a thread has the pool
    u32 workers;               // threads that were started, numbered from 1
    ALONE u32 doors;    // of the loop
    ALONE u32 loops;    // so many there were: who sleeps waits for the next
    u32 asleep;
    u32 caller;             // the processor of the thread that has the loop, from 1 on
    long began, closed;     // when the loop did, and when its caller had no work left; else 0
    ALONE body run;         // the loop; written while nobody is in
    void *data;
    void *error;
    environment counts;
    u32 threads, failed;
    opaque mutex, condition;
    share shares[MOST_THREADS];
} pool;

// One in a process, whichever libraries define it, and none of these is unloaded any more.
#define SIZE 33408
extern pool ansor_deploy_pool_1;
_Static_assert(sizeof(pool) == SIZE, "as large as is said below");
#define TEXT(value) TEXT_OF(value)
#define TEXT_OF(value) #value
__asm__(".pushsection .bss.ansor_deploy_pool, \"aw\", %nobits\n"
        ".type ansor_deploy_pool_1, %gnu_unique_object\n"
        ".size ansor_deploy_pool_1, " TEXT(SIZE) "\n"
        ".p2align 7\n"
        "ansor_deploy_pool_1: .zero " TEXT(SIZE) "\n"
        ".popsection\n");
#define state ansor_deploy_pool_1

// How many threads a loop of this library takes.
static int own_threads = 1;

// A function of the library as tvm-ffi has them: so many threads from now on, for one integer.
typedef struct { int type, zero; long number; } any;
int __tvm_ffi_use_threads(void *self, const any *arguments, int count, any *result) {
    (void)self, (void)result;
    if (count == 1)
        __atomic_store_n(&own_threads, (int)arguments[0].number, __ATOMIC_SEQ_CST);
    return 0;
}

#define get(place) __atomic_load_n(&(place), __ATOMIC_SEQ_CST)
#define set(place, value) __atomic_store_n(&(place), value, __ATOMIC_SEQ_CST)
#define add(place, value) __atomic_fetch_add(&(place), value, __ATOMIC_SEQ_CST)

static long now(void) {
    timespec time;
    clock_gettime(MONOTONIC, &time);
    return time.seconds * 1000000000L + time.nanoseconds;
}

// Keep the first error of a loop.
static void fail(void) {
    void *error = 0;
    TVMFFIErrorMoveFromRaised(&error);
    if (add(state.failed, 1) == 0)
        state.error = error;
    else if (error)
        TVMFFIObjectDecRef(error);
}

static void raise(void *error) {
    if (error) {
        TVMFFIErrorSetRaised(error);
        TVMFFIObjectDecRef(error);
    }
}

// Run chunks until there are none, one's own first. `me`: a number below `threads`.
static void work(u32 me) {
    u32 threads = state.threads;
    for (u32 other = 0; other < threads; other++) {
        share *from = &state.shares[(me + other) % threads];
        while (get(from->next) < from->end) {
            u32 chunk = add(from->next, 1);
            if (chunk < from->end && state.run((int)chunk, &state.counts, state.data) != 0)
                fail();
        }
    }
}

// For how long this thread has kept the loop waiting, beyond what a task takes.
static long lateness(void) {
    long closed = get(state.closed);
    long late = closed ? now() - closed : 0;
    return late > LATE_NS && late > (closed - get(state.began)) / 2 ? late : 0;
}

static void stay_away(long ns) {
    timespec time = {ns / 1000000000L, ns % 1000000000L};
    nanosleep(&time, 0);
}

// Come in where a loop is open for this thread; whether it did.
static int join(u32 me) {
    u32 doors = get(state.doors);
    if (!(doors & OPEN) ||
        !__atomic_compare_exchange_n(&state.doors, &doors, doors + 1, 0, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return 0;
    if (me < state.threads)
        work(me);
    long late = lateness();
    add(state.doors, -1u);
    if (late)
        stay_away(BENCHED * late);
    return 1;
}

static void sleep_until_after(u32 loops) {
    pthread_mutex_lock(&state.mutex);
    add(state.asleep, 1);
    while (get(state.loops) == loops)
        pthread_cond_wait(&state.condition, &state.mutex);
    add(state.asleep, -1u);
    pthread_mutex_unlock(&state.mutex);
}

static int is_on_callers_processor(void) {
    int here = sched_getcpu();
    return here >= 0 && (u32)here + 1 == get(state.caller);
}

// Leave the caller's processor for another one that is allowed; whether this thread stands elsewhere
// then. `moved`: when it did so last.
static int is_elsewhere(const u64 *allowed, long *moved) {
    if (!is_on_callers_processor())
        return 1;
    if (now() - *moved < SETTLED_NS)
        return 0;
    *moved = now();
    u64 others[MASK_WORDS];
    for (int at = 0; at < MASK_WORDS; at++)
        others[at] = allowed[at];
    u32 here = get(state.caller) - 1;
    others[here / 64 % MASK_WORDS] &= ~(1ul << here % 64);
    return sched_setaffinity(0, sizeof others, others) == 0;
}

static void *worker(void *number) {
    u32 me = (u32)(u64)number;
    u64 allowed[MASK_WORDS] = {0};
    long moved = 0;
    sched_getaffinity(0, sizeof allowed, allowed);
    for (u32 seen = get(state.loops) - 1;;) {
        long until = now() + SPIN_NS;
        u32 loops;
        while ((loops = get(state.loops)) == seen && now() < until && !is_on_callers_processor())
            ;
        if (loops != seen && !is_elsewhere(allowed, &moved))
            seen = loops;
        if (loops == seen)
            sleep_until_after(seen);
        else if (join(me) || !(get(state.doors) & OPEN))
            seen = loops;
    }
    return 0;
}

// Start threads up to so many beside the caller; how many the loop may have in all.
static u32 staffed(u32 threads) {
    while (state.workers + 1 < threads) {
        u64 thread;
        u64 number = state.workers + 1;
        if (pthread_create(&thread, 0, worker, (void *)number) != 0)
            break; // fewer do as well
        pthread_detach(thread);
        state.workers++;
    }
    return state.workers + 1 < threads ? state.workers + 1 : threads;
}

// How many processors the calling thread may use.
static int processors(void) {
    u64 mask[MASK_WORDS] = {0};
    int found = 0;
    if (sched_getaffinity(0, sizeof mask, mask) < 0)
        return MOST_THREADS;
    for (int at = 0; at < MASK_WORDS; at++)
        found += __builtin_popcountl(mask[at]);
    return found;
}

static u32 wanted(void) {
    static int there; // of processors, looked up once
    if (get(there) == 0)
        set(there, processors());
    int most = there < MOST_THREADS ? there : MOST_THREADS;
    int threads = get(own_threads);
    return threads < 1 ? 1 : (u32)(threads < most ? threads : most);
}

static int alone(body run, void *data) {
    environment one = {0, 1};
    return run(0, &one, data);
}

static void call_others(void) {
    set(state.caller, (u32)(sched_getcpu() + 1));
    set(state.began, now());
    set(state.closed, 0);
    set(state.doors, OPEN);
    add(state.loops, 1);
    if (get(state.asleep) == 0)
        return;
    pthread_mutex_lock(&state.mutex);
    pthread_cond_broadcast(&state.condition);
    pthread_mutex_unlock(&state.mutex);
}

static void wait_for_others(void) {
    long until = now() + PATIENCE_NS;
    set(state.closed, until - PATIENCE_NS);
    __atomic_fetch_and(&state.doors, ~OPEN, __ATOMIC_SEQ_CST);
    while (get(state.doors) != 0)
        if (now() > until)
            sched_yield();
}

// What kernels call for a parallel loop, in place of TVM's function of that name: 0, or -1 where
// one of its tasks failed, with the error raised in this thread.
__attribute__((visibility("hidden"))) int ansor_deploy_launch(body run, void *data, int count) {
    u32 threads = wanted(), free = 0;
    (void)count; // TVM passes 0: as many as there are threads
    if (threads == 1 || !__atomic_compare_exchange_n(&state.taken, &free, 1, 0, __ATOMIC_SEQ_CST,
                                                     __ATOMIC_SEQ_CST))
        return alone(run, data);
    threads = staffed(threads);
    state.run = run, state.data = data, state.error = 0, state.threads = threads;
    state.counts = (environment){0, (int)(CHUNKS * threads)};
    set(state.failed, 0);
    for (u32 at = 0; at < threads; at++) {
        state.shares[at].end = CHUNKS * (at + 1);
        set(state.shares[at].next, CHUNKS * at);
    }
    call_others();
    work(0);
    wait_for_others();
    u32 failed = get(state.failed);
    void *error = state.error;
    set(state.taken, 0);
    if (failed)
        raise(error);
    return failed ? -1 : 0;
}

// TVM's loader puts its own function where this name is exported; here it is not.
__attribute__((visibility("hidden"))) int (*__TVMBackendParallelLaunch)(body, void *, int) =
    ansor_deploy_launch;

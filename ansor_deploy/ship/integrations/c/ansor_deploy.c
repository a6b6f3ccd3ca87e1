/* See ansor_deploy.h. Valid C99 and valid C++, over the C ABI of tvm_ffi. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* realpath, strdup */
#endif

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "ansor_deploy.h"
#include "ansor_deploy_batches.h"
#include "ansor_deploy_manifest.h"
#include "ansor_deploy_memory.h"
#include "ansor_deploy_names.h"
#include "ansor_deploy_values.h"
#include "ansor_deploy_weights.h"

struct ansor_deploy_model {
    char *path;
    manifest declared;
    TVMFFIAny library; /* the module of the file */
    int64_t code;      /* the number of the code that is run, from 0 on */
    TVMFFIAny machine; /* the virtual machine that runs it */
    runner *runners;   /* one a variant of the manifest */
    pthread_mutex_t running; /* held by the thread that runs it */
    pid_t process; /* that loaded it, or first ran it after a fork; negative while it adopts it */
};

#ifdef __cplusplus
extern "C"
#endif
int TVMBackendParallelBarrier(int task, void *group);

/* Nothing else here is a symbol of libtvm_runtime, which a linker with --as-needed would leave
   out: but what it registers when it is loaded is called by name. */
__attribute__((used)) static int (*const needs_runtime)(int, void *) = TVMBackendParallelBarrier;

const char *ansor_deploy_last_error(void) { return last_error; }

/* ---- Loading ---- */

/* The code that the processor has all instructions for, before any of it runs; the best, or the
   one of a number. */
static int choose_code(ansor_deploy_model *model, int wanted) {
    TVMFFIAny code, number = integer(wanted);
    if (call_method(model->library, "choose_code", &number, wanted >= 0, &code) != 0) return -1;
    model->code = code.v_int64;
    return 0;
}

static int start(ansor_deploy_model *model, int code) {
    char *name = own_name(model->path);
    TVMFFIAny file = text(name), nothing;
    if (name == NULL) return fail("%s", strerror(errno));
    int status = call_global("ffi.ModuleLoadFromFile", &file, 1, &model->library);
    free(name);
    if (status != 0 || choose_code(model, code) != 0) return -1;
    if (call_method(model->library, "vm_load_executable", NULL, 0, &model->machine) != 0) return -1;
    TVMFFIAny place[] = {integer(kDLCPU), integer(0), integer(2)}; /* 2: memory is kept, pooled */
    return call_method(model->machine, "vm_initialization", place, 3, &nothing);
}

static int make_arguments(const tensors *list, argument *made) {
    for (size_t at = 0; at < list->count; at++)
        if (make_argument(&list->items[at], &made[at]) != 0) return -1;
    return 0;
}

static int make_runner(ansor_deploy_model *model, size_t variant, TVMFFIAny weights) {
    runner *made = &model->runners[variant];
    const interface *one = &model->declared.variants[variant];
    size_t inputs = one->inputs.count, all = inputs + one->outputs.count;
    char name[32], into[40];
    snprintf(name, sizeof name, variant > 0 ? "main_%zu" : "main", variant);
    snprintf(into, sizeof into, "%s_into", name);
    if (bind_function(model->machine, model->code, name, into, weights) != 0) return -1;
    if (get_function(model->machine, into, &made->main) != 0) return -1;
    made->arguments = (argument *)zeros(all, sizeof *made->arguments);
    made->values = (TVMFFIAny *)zeros(all, sizeof *made->values);
    if (made->arguments == NULL || made->values == NULL) return -1;
    if (make_arguments(&one->inputs, made->arguments) != 0) return -1;
    if (make_arguments(&one->outputs, made->arguments + inputs) != 0) return -1;
    for (size_t at = 0; at < all; at++) made->values[at] = made->arguments[at].tensor;
    return 0;
}

static int make_runners(ansor_deploy_model *model) {
    TVMFFIAny weights;
    if (open_weights(model->machine, model->path, &weights) != 0) return -1;
    model->runners = (runner *)zeros(model->declared.count, sizeof *model->runners);
    int bad = model->runners == NULL;
    for (size_t at = 0; !bad && at < model->declared.count; at++)
        bad = make_runner(model, at, weights) != 0;
    release(&weights);
    return bad ? -1 : 0;
}

static int open_model(ansor_deploy_model *model, const char *path, int code) {
    model->path = strdup(path);
    if (model->path == NULL) return fail("out of memory");
    if (read_manifest(model->path, &model->declared) != 0) return -1;
    int64_t threads = model->declared.threads;
    if (start(model, code) != 0 || make_runners(model) != 0 ||
        (threads >= 0 && ansor_deploy_use_threads(model, (int)threads) != 0))
        return fail("%s: cannot be loaded: %s", path, last_error);
    return 0;
}

ansor_deploy_model *ansor_deploy_load(const char *path) { return ansor_deploy_load_code(path, -1); }

ansor_deploy_model *ansor_deploy_load_code(const char *path, int code) {
    ansor_deploy_model *model = (ansor_deploy_model *)zeros(1, sizeof *model);
    if (model == NULL) return NULL;
    pthread_mutex_init(&model->running, NULL);
    model->process = getpid();
    if (open_model(model, path, code) == 0) return model;
    ansor_deploy_free(model);
    return NULL;
}

static void free_runner(runner *one, const interface *declared) {
    size_t all = declared->inputs.count + declared->outputs.count;
    for (size_t at = 0; one->arguments != NULL && at < all; at++)
        free_argument(&one->arguments[at]);
    free(one->arguments);
    free(one->values);
    release(&one->main);
}

void ansor_deploy_free(ansor_deploy_model *model) {
    if (model == NULL) return;
    for (size_t at = 0; model->runners != NULL && at < model->declared.count; at++)
        free_runner(&model->runners[at], &model->declared.variants[at]);
    free(model->runners);
    release(&model->machine);
    release(&model->library);
    free_batches(&model->declared.range);
    free_variants(&model->declared);
    free(model->path);
    pthread_mutex_destroy(&model->running);
    free(model);
}

int ansor_deploy_code(const ansor_deploy_model *model) { return (int)model->code; }

int ansor_deploy_use_threads(ansor_deploy_model *model, int threads) {
    TVMFFIAny count = integer(threads), nothing;
    if (threads < 1) return fail("a model takes one thread at least, and %d are asked for", threads);
    if (!has_function(model->library, "use_threads")) return 0; /* it is for a GPU */
    return call_method(model->library, "use_threads", &count, 1, &nothing);
}

/* ---- What a model takes and gives ---- */

size_t ansor_deploy_variants(const ansor_deploy_model *model) { return model->declared.count; }

int ansor_deploy_batches(const ansor_deploy_model *model, int64_t *least, int64_t *most) {
    *least = model->declared.range.least;
    *most = model->declared.range.most;
    return *most > 0 ? 0 : fail("%s: it takes no range of batches", model->path);
}

static const ansor_deploy_tensor *listed(const tensors *list, size_t *count) {
    *count = list->count;
    return list->items;
}

const ansor_deploy_tensor *ansor_deploy_variant_inputs(const ansor_deploy_model *model,
                                                       size_t variant, size_t *count) {
    *count = 0;
    if (variant >= model->declared.count) return NULL;
    return listed(&model->declared.variants[variant].inputs, count);
}

const ansor_deploy_tensor *ansor_deploy_variant_outputs(const ansor_deploy_model *model,
                                                        size_t variant, size_t *count) {
    *count = 0;
    if (variant >= model->declared.count) return NULL;
    return listed(&model->declared.variants[variant].outputs, count);
}

const ansor_deploy_tensor *ansor_deploy_inputs(const ansor_deploy_model *model, size_t *count) {
    return ansor_deploy_variant_inputs(model, 0, count);
}

const ansor_deploy_tensor *ansor_deploy_outputs(const ansor_deploy_model *model, size_t *count) {
    return ansor_deploy_variant_outputs(model, 0, count);
}

static int same(const ansor_deploy_tensor *one, const ansor_deploy_tensor *other) {
    return strcmp(one->name, other->name) == 0 && strcmp(one->dtype, other->dtype) == 0 &&
           one->rank == other->rank && one->bytes == other->bytes &&
           (one->rank == 0 ||
            memcmp(one->shape, other->shape, one->rank * sizeof *one->shape) == 0);
}

static int expect(const ansor_deploy_model *model, const char *kind, const tensors *have,
                  const ansor_deploy_tensor *want, size_t count) {
    if (have->count != count)
        return fail("%s: it has %zu %ss, and %zu are expected", model->path, have->count, kind,
                    count);
    for (size_t at = 0; at < count; at++)
        if (!same(&have->items[at], &want[at]))
            return fail("%s: its %s %zu is %s, %s, %zu bytes; expected %s, %s, %zu bytes",
                        model->path, kind, at, have->items[at].name, have->items[at].dtype,
                        have->items[at].bytes, want[at].name, want[at].dtype, want[at].bytes);
    return 0;
}

int ansor_deploy_expect(const ansor_deploy_model *model, const ansor_deploy_tensor *inputs,
                        size_t input_count, const ansor_deploy_tensor *outputs,
                        size_t output_count) {
    return ansor_deploy_expect_variant(model, 0, inputs, input_count, outputs, output_count);
}

static int has_variant(const ansor_deploy_model *model, size_t variant) {
    if (variant < model->declared.count) return 1;
    fail("%s: it has no variant %zu, but only %zu", model->path, variant, model->declared.count);
    return 0;
}

int ansor_deploy_expect_variant(const ansor_deploy_model *model, size_t variant,
                                const ansor_deploy_tensor *inputs, size_t input_count,
                                const ansor_deploy_tensor *outputs, size_t output_count) {
    if (!has_variant(model, variant)) return -1;
    const interface *one = &model->declared.variants[variant];
    if (expect(model, "input", &one->inputs, inputs, input_count) != 0) return -1;
    return expect(model, "output", &one->outputs, outputs, output_count);
}

/* ---- Running ---- */

static int check(const ansor_deploy_model *model, size_t variant, const ansor_deploy_input *inputs,
                 size_t input_count, const ansor_deploy_output *outputs, size_t output_count) {
    const interface *one = &model->declared.variants[variant];
    const tensors *takes = &one->inputs, *gives = &one->outputs;
    if (input_count != takes->count || output_count != gives->count)
        return fail("%s: it has %zu inputs and %zu outputs; given %zu and %zu", model->path,
                    takes->count, gives->count, input_count, output_count);
    for (size_t at = 0; at < input_count; at++)
        if (fits(model->path, &takes->items[at], inputs[at].dtype, inputs[at].data,
                 inputs[at].bytes))
            return -1;
    for (size_t at = 0; at < output_count; at++)
        if (fits(model->path, &gives->items[at], outputs[at].dtype, outputs[at].data,
                 outputs[at].bytes))
            return -1;
    return 0;
}

/* No variant fits: the last error lists what the inputs of each are. */
static int fits_none(const ansor_deploy_model *model) {
    char takes[sizeof last_error / 2];
    size_t used = 0;
    for (size_t at = 0; at < model->declared.count; at++) {
        const tensors *inputs = &model->declared.variants[at].inputs;
        for (size_t k = 0; k < inputs->count && used < sizeof takes; k++)
            used += (size_t)snprintf(takes + used, sizeof takes - used, "%s%s %s, %zu bytes",
                                     k > 0 ? ", " : at > 0 ? "; or " : "", inputs->items[k].name,
                                     inputs->items[k].dtype, inputs->items[k].bytes);
    }
    return fail("%s: what is given fits none of its %zu variants; it takes %s", model->path,
                model->declared.count, takes);
}

/* An input is read where it lies, unless an output is to be written over it. */
static int put_input(const runner *chosen, size_t at, const ansor_deploy_input *input,
                     const ansor_deploy_output *outputs, size_t output_count) {
    argument *one = &chosen->arguments[at];
    int borrowed = suits(one, input->data);
    for (size_t k = 0; k < output_count; k++)
        if (overlap(input->data, input->bytes, outputs[k].data, outputs[k].bytes)) borrowed = 0;
    if (put(one, borrowed ? input->data : NULL, input->bytes) != 0) return -1;
    if (!borrowed) copy(one->spare, input->data, input->bytes);
    return 0;
}

static int put_all(const runner *chosen, const ansor_deploy_input *inputs, size_t input_count,
                   const ansor_deploy_output *outputs, size_t output_count) {
    for (size_t at = 0; at < input_count; at++)
        if (put_input(chosen, at, &inputs[at], outputs, output_count) != 0) return -1;
    for (size_t at = 0; at < output_count; at++) {
        argument *one = &chosen->arguments[input_count + at];
        const void *data = suits(one, outputs[at].data) ? outputs[at].data : NULL;
        if (put(one, data, outputs[at].bytes) != 0) return -1;
    }
    return 0;
}

/* Let a child of fork run the model, on one thread: neither is there one that ran it, and left it
   half done, nor are there those that would help. */
static int adopt(ansor_deploy_model *model) {
    int whole = pthread_mutex_trylock(&model->running) == 0;
    __atomic_store_n(&model->process, whole ? getpid() : 0, __ATOMIC_RELEASE);
    if (!whole)
        return fail("%s: a thread ran it when this process was forked; load it again", model->path);
    if (ansor_deploy_use_threads(model, 1) == 0) return 0;
    pthread_mutex_unlock(&model->running);
    return -1;
}

/* Wait until no other thread runs the model. In a child of fork, the first thread that comes adopts
   it, and others wait for that. */
static int enter(ansor_deploy_model *model) {
    pid_t here = getpid(), owner = __atomic_load_n(&model->process, __ATOMIC_ACQUIRE);
    while (owner != here) {
        if (owner == -here) {
            sched_yield();
            owner = __atomic_load_n(&model->process, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&model->process, &owner, -here, 0, __ATOMIC_ACQ_REL,
                                               __ATOMIC_ACQUIRE)) {
            return adopt(model);
        }
    }
    pthread_mutex_lock(&model->running);
    return 0;
}

static int run_variant(ansor_deploy_model *model, size_t variant, const ansor_deploy_input *inputs,
                       size_t input_count, const ansor_deploy_output *outputs,
                       size_t output_count) {
    TVMFFIAny result;
    if (!has_variant(model, variant)) return -1;
    if (check(model, variant, inputs, input_count, outputs, output_count) != 0) return -1;
    const runner *chosen = &model->runners[variant];
    if (put_all(chosen, inputs, input_count, outputs, output_count) != 0) return -1;
    if (call(chosen->main.v_obj, chosen->values, input_count + output_count, &result) != 0)
        return fail("%s: cannot be run: %s", model->path, last_error);
    release(&result);
    const argument *made = chosen->arguments + input_count;
    for (size_t at = 0; at < output_count; at++) /* not written where the caller wants it */
        if (!made[at].borrowed) copy(outputs[at].data, made[at].spare, outputs[at].bytes);
    return 0;
}

int ansor_deploy_run_variant(ansor_deploy_model *model, size_t variant,
                             const ansor_deploy_input *inputs, size_t input_count,
                             const ansor_deploy_output *outputs, size_t output_count) {
    if (enter(model) != 0) return -1;
    int status = run_variant(model, variant, inputs, input_count, outputs, output_count);
    pthread_mutex_unlock(&model->running);
    return status;
}

int ansor_deploy_run_batch(ansor_deploy_model *model, int64_t rows,
                           const ansor_deploy_input *inputs, size_t input_count,
                           const ansor_deploy_output *outputs, size_t output_count) {
    if (check_batch(model->path, &model->declared, rows, inputs, input_count, outputs,
                    output_count) != 0)
        return -1;
    ansor_deploy_input *apart = inputs_apart(inputs, input_count, outputs, output_count);
    if (apart == NULL) return -1;
    int status = enter(model);
    if (status == 0) {
        status = run_in_parts(&model->declared, model->runners, rows, apart, outputs);
        pthread_mutex_unlock(&model->running);
    }
    free_apart(apart, inputs, input_count);
    return status == 0 ? 0 : fail("%s: cannot be run: %s", model->path, last_error);
}

int ansor_deploy_run(ansor_deploy_model *model, const ansor_deploy_input *inputs,
                     size_t input_count, const ansor_deploy_output *outputs,
                     size_t output_count) {
    size_t variant = 0, count = model->declared.count;
    int several = count > 1 || model->declared.range.most > 0;
    while (variant < count && several &&
           check(model, variant, inputs, input_count, outputs, output_count) != 0)
        variant++;
    if (variant == count && rows_given(&model->declared, inputs, input_count) > 0)
        return ansor_deploy_run_batch(model, rows_given(&model->declared, inputs, input_count),
                                      inputs, input_count, outputs, output_count);
    if (variant == count) return fits_none(model);
    return ansor_deploy_run_variant(model, variant, inputs, input_count, outputs, output_count);
}

/* ---- Steps of a model with a context ---- */

size_t ansor_deploy_context(const ansor_deploy_model *model) { return model->declared.kept.rows; }

size_t ansor_deploy_length(const ansor_deploy_model *model) {
    return (size_t)model->declared.kept.counted;
}

const ansor_deploy_tensor *ansor_deploy_step_inputs(const ansor_deploy_model *model,
                                                    size_t *count) {
    *count = model->declared.kept.step_inputs;
    return model->declared.kept.step;
}

static int has_context(const ansor_deploy_model *model) {
    if (model->declared.kept.rows > 0) return 1;
    fail("%s: it has no context: it is to be built with --context ROWS", model->path);
    return 0;
}

/* What a step is given, in its place: where it lies, or, of what grows, among its zeros. */
static int put_step(ansor_deploy_model *model, size_t at, const ansor_deploy_input *input) {
    context *kept = &model->declared.kept;
    const ansor_deploy_tensor *tensor = &model->declared.variants[0].inputs.items[at];
    const room *own = &kept->rooms[at];
    ansor_deploy_tensor wanted = *tensor;
    size_t rows = (size_t)kept->counted + own->more;
    if (own->memory != NULL) wanted.bytes = own->outer * rows * own->inner;
    if (fits(model->path, &wanted, input->dtype, input->data, input->bytes) != 0) return -1;
    if (own->memory != NULL)
        spread(own, input->data, rows);
    else
        kept->given[at] = *input;
    return 0;
}

int ansor_deploy_step(ansor_deploy_model *model, const ansor_deploy_input *inputs,
                      size_t input_count, const ansor_deploy_output *outputs,
                      size_t output_count) {
    context *kept = &model->declared.kept;
    if (!has_context(model)) return -1;
    if ((size_t)kept->counted + kept->tokens > kept->rows)
        return fail("%s: its context is full: %lld of %zu rows count, and a step adds %zu",
                    model->path, (long long)kept->counted, kept->rows, kept->tokens);
    if (input_count != kept->step_inputs)
        return fail("%s: a step has %zu inputs; given %zu", model->path, kept->step_inputs,
                    input_count);
    for (size_t at = 0; at < kept->inputs; at++)
        if (at != kept->length && !kept->rooms[at].is_cache && put_step(model, at, inputs++) != 0)
            return -1;
    if (ansor_deploy_run_variant(model, 0, kept->given, kept->inputs, outputs, output_count) != 0)
        return -1;
    kept->counted += (int64_t)kept->tokens;
    return 0;
}

int ansor_deploy_truncate(ansor_deploy_model *model, size_t length) {
    context *kept = &model->declared.kept;
    if (!has_context(model)) return -1;
    if (length > (size_t)kept->counted)
        return fail("%s: it cannot keep %zu rows: %lld count", model->path, length,
                    (long long)kept->counted);
    for (size_t at = 0; at < kept->inputs; at++)
        if (kept->rooms[at].memory != NULL) clear(&kept->rooms[at], length + kept->rooms[at].more);
    kept->counted = (int64_t)length;
    return 0;
}

void *ansor_deploy_cache(ansor_deploy_model *model, const char *input) {
    const tensors *inputs = &model->declared.variants[0].inputs;
    size_t at = 0;
    if (!has_context(model) || find_tensor(inputs, input, &at) != 0) return NULL;
    if (model->declared.kept.rooms[at].is_cache) return model->declared.kept.rooms[at].memory;
    fail("%s: %s is no cache", model->path, input);
    return NULL;
}

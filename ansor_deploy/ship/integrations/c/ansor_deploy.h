/* Load and run a library that `ansor-deploy build` wrote: from C99 or C++, without Python.
 *
 * Compile ansor_deploy.c into the program and link it with libtvm_runtime and libtvm_ffi. What
 * fails returns NULL or -1, and ansor_deploy_last_error() says why. A model runs for one thread at
 * a time, and others wait; several models may run in several threads, and share what other threads
 * help them. The steps of a context are one thread's. In a child of fork a model runs on one
 * thread; one that was running has to be loaded again.
 */
#ifndef ANSOR_DEPLOY_H
#define ANSOR_DEPLOY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An input or an output of a model. */
typedef struct ansor_deploy_tensor {
    const char *name;     /* in the ONNX model, UTF-8 */
    const char *dtype;    /* "float32", "int64", "bool", ... */
    size_t rank;          /* 0 for a scalar */
    const int64_t *shape; /* `rank` extents, the last one contiguous */
    size_t bytes;         /* of all elements */
} ansor_deploy_tensor;

/* What a run reads: where it lies, or a copy of what is not aligned to its elements or is to be
   written over. */
typedef struct ansor_deploy_input {
    const char *dtype;
    const void *data;
    size_t bytes;
} ansor_deploy_input;

/* What a run writes, where it lies; apart from the other outputs. */
typedef struct ansor_deploy_output {
    const char *dtype;
    void *data;
    size_t bytes;
} ansor_deploy_output;

typedef struct ansor_deploy_model ansor_deploy_model;

/* The library at `path`, with its manifest beside it; NULL if either is missing or damaged, or if
   the processor lacks what its code needs. Of a library with code for several targets, the best
   that the processor runs. */
ansor_deploy_model *ansor_deploy_load(const char *path);

/* The same with one of its codes, in the order of `codes` in the manifest, from 0 on. */
ansor_deploy_model *ansor_deploy_load_code(const char *path, int code);

/* Which of its codes a model runs; 0 of a library that has one. */
int ansor_deploy_code(const ansor_deploy_model *model);

/* Let a run take so many threads, the caller's among them; at first, those of its preset, else as
   many as the target has cores. Never more than the processors that the process may use.
   Of a library for a GPU there is nothing to do. */
int ansor_deploy_use_threads(ansor_deploy_model *model, int threads);

/* How many shapes the library was built for; 1 but for a build with several of --input-shape. */
size_t ansor_deploy_variants(const ansor_deploy_model *model);

/* Inputs, and outputs, in the order that a run takes them; they live as long as the model. Of the
   first variant, or of one by its number from 0 on; NULL where there is no such. */
const ansor_deploy_tensor *ansor_deploy_inputs(const ansor_deploy_model *model, size_t *count);
const ansor_deploy_tensor *ansor_deploy_outputs(const ansor_deploy_model *model, size_t *count);
const ansor_deploy_tensor *ansor_deploy_variant_inputs(const ansor_deploy_model *model,
                                                       size_t variant, size_t *count);
const ansor_deploy_tensor *ansor_deploy_variant_outputs(const ansor_deploy_model *model,
                                                        size_t variant, size_t *count);

/* 0 if the model, its first variant, has exactly these inputs and outputs; -1 if not. */
int ansor_deploy_expect(const ansor_deploy_model *model, const ansor_deploy_tensor *inputs,
                        size_t input_count, const ansor_deploy_tensor *outputs,
                        size_t output_count);
int ansor_deploy_expect_variant(const ansor_deploy_model *model, size_t variant,
                                const ansor_deploy_tensor *inputs, size_t input_count,
                                const ansor_deploy_tensor *outputs, size_t output_count);

/* Run once: the first variant that what is given fits. -1, and nothing is run, if a count, a dtype
   or a size is none of the model's. */
int ansor_deploy_run(ansor_deploy_model *model, const ansor_deploy_input *inputs,
                     size_t input_count, const ansor_deploy_output *outputs,
                     size_t output_count);

/* The same for one variant, by its number from 0 on. */
int ansor_deploy_run_variant(ansor_deploy_model *model, size_t variant,
                             const ansor_deploy_input *inputs, size_t input_count,
                             const ansor_deploy_output *outputs, size_t output_count);

/* 0 if the library was built for a range of batches, with the least and the most rows that it
   takes; -1, and zeros, if not. What there is no variant for runs in parts that are variants: by
   ansor_deploy_run, which tells the rows by the sizes of the inputs, or by ansor_deploy_run_batch,
   which is told. */
int ansor_deploy_batches(const ansor_deploy_model *model, int64_t *least, int64_t *most);
int ansor_deploy_run_batch(ansor_deploy_model *model, int64_t rows,
                           const ansor_deploy_input *inputs, size_t input_count,
                           const ansor_deploy_output *outputs, size_t output_count);

/* ---- Steps: for a library that was built with --context ---- */

/* How many rows its caches have room for; 0 of a library without a context. */
size_t ansor_deploy_context(const ansor_deploy_model *model);

/* How many of them count: none at first, and after each step as many more as that has tokens. */
size_t ansor_deploy_length(const ansor_deploy_model *model);

/* What a step takes, in order: the model's inputs but for its caches. The shape of one that grows,
   such as a mask, is what it has room for; a step is given as much of it as counts, with what is
   new, and its bytes say so. */
const ansor_deploy_tensor *ansor_deploy_step_inputs(const ansor_deploy_model *model,
                                                    size_t *count);

/* Run once, and append to the caches, which the model keeps, in place. Outputs are those of
   ansor_deploy_outputs. -1, and no row more counts, if anything does not fit, or nothing more. */
int ansor_deploy_step(ansor_deploy_model *model, const ansor_deploy_input *inputs,
                      size_t input_count, const ansor_deploy_output *outputs,
                      size_t output_count);

/* Forget all rows but the first so many. */
int ansor_deploy_truncate(ansor_deploy_model *model, size_t length);

/* The memory of a cache, by the input's name: laid out as ansor_deploy_inputs describes it, as long
   as the model lives. NULL if it is none. */
void *ansor_deploy_cache(ansor_deploy_model *model, const char *input);

/* Give the model back; NULL is nothing to do. */
void ansor_deploy_free(ansor_deploy_model *model);

/* Why the last call of this thread that failed did so, in one line; "" before any has. */
const char *ansor_deploy_last_error(void);

#ifdef __cplusplus
}
#endif

#endif

// What the source of kernels takes of CUDA, for a C++ compiler of this machine.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
struct dim3 {
    unsigned x, y, z;
};
extern "C" {
extern dim3 threadIdx, blockIdx;
void __syncthreads();
void ansor_exchange(const void *value, unsigned lane, void *other, unsigned size);
}

static inline unsigned __activemask() { return 0xffffffffu; }
static inline unsigned ansor_lane() { return threadIdx.x % 32; }
template <typename T> T ansor_from(T value, unsigned lane) {
    T other = value;
    ansor_exchange(&value, lane, &other, sizeof(T));
    return other;
}
template <typename T> T __shfl_sync(unsigned, T value, int lane, int = 32) {
    return ansor_from(value, lane);
}
template <typename T> T __shfl_down_sync(unsigned, T value, unsigned by, int width = 32) {
    unsigned lane = ansor_lane();
    return ansor_from(value, lane % width + by < (unsigned)width ? lane + by : lane);
}

static inline float max(float a, float b) { return fmaxf(a, b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
#define __expf expf
#define __logf logf
#define __log2f log2f
#define __cosf cosf
#define __sinf sinf
#define __tanf tanf
#define __powf powf
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define ANSOR_VECTORS(T) \
    struct alignas(2 * sizeof(T)) T##2 { T x, y; }; \
    struct alignas(4 * sizeof(T)) T##4 { T x, y, z, w; }; \
    static inline T##2 make_##T##2(T x, T y) { return {x, y}; } \
    static inline T##4 make_##T##4(T x, T y, T z, T w) { return {x, y, z, w}; }
ANSOR_VECTORS(float)
ANSOR_VECTORS(int)

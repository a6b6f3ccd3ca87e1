// Which of a library's codes this processor runs: asked once, by who loads the library.
//
// Without an answer the first vector instruction that the processor lacks would end the process.
// So this is compiled for the least processor of its architecture, and asks the processor itself
// and whether the system keeps its registers: /proc/cpuinfo is the host's under an emulator.
//
// processor.x86_64.ll and processor.aarch64.ll are made of this file by `python docs/make_llvm.py`.

typedef unsigned int u32;
typedef unsigned long u64;

int snprintf(char *text, u64 size, const char *format, ...);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
// Of thread_pool.c; a library for a GPU has no threads.
__attribute__((weak)) int __tvm_ffi_use_threads(void *, const void *arguments, int, void *);

// Written where a library is linked: of each code the cores of its target and LLVM's names of what
// it may use, as "8 avx avx2;4 avx"; the code that wants most comes first.
extern const char ansor_deploy_codes[] __attribute__((visibility("hidden")));

// LLVM's name of a feature that code generation may use; the word and the bit that have it.
typedef struct { char name[16]; u32 word, bit; } feature;

#if defined(__x86_64__)

enum { F1_ECX, F7_EBX, F7_ECX, F7_EDX, F7_1_EAX, F81_ECX, WORDS };
enum { OSXSAVE = 27, YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 };
enum { ARCH_PRCTL = 158, ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };  // of Linux

static const feature features[] = {
    {"sse3", F1_ECX, 0}, {"ssse3", F1_ECX, 9}, {"fma", F1_ECX, 12}, {"sse4.1", F1_ECX, 19},
    {"sse4.2", F1_ECX, 20}, {"movbe", F1_ECX, 22}, {"popcnt", F1_ECX, 23}, {"avx", F1_ECX, 28},
    {"f16c", F1_ECX, 29}, {"lzcnt", F81_ECX, 5}, {"sse4a", F81_ECX, 6}, {"xop", F81_ECX, 11},
    {"fma4", F81_ECX, 16}, {"tbm", F81_ECX, 21}, {"bmi", F7_EBX, 3}, {"avx2", F7_EBX, 5},
    {"bmi2", F7_EBX, 8}, {"avx512f", F7_EBX, 16}, {"avx512dq", F7_EBX, 17},
    {"avx512ifma", F7_EBX, 21}, {"avx512cd", F7_EBX, 28}, {"avx512bw", F7_EBX, 30},
    {"avx512vl", F7_EBX, 31}, {"avx512vbmi", F7_ECX, 1}, {"avx512vbmi2", F7_ECX, 6},
    {"gfni", F7_ECX, 8}, {"avx512vnni", F7_ECX, 11}, {"avx512bitalg", F7_ECX, 12},
    {"avx512vpopcntdq", F7_ECX, 14}, {"amx-bf16", F7_EDX, 22}, {"avx512fp16", F7_EDX, 23},
    {"amx-tile", F7_EDX, 24}, {"amx-int8", F7_EDX, 25}, {"avxvnni", F7_1_EAX, 4},
    {"avx512bf16", F7_1_EAX, 5}, {"avxifma", F7_1_EAX, 23},
};

typedef struct { u32 a, b, c, d; } registers;

static registers cpuid(u32 leaf, u32 part) {
    registers got;
    __asm__ volatile("cpuid"
                     : "=a"(got.a), "=b"(got.b), "=c"(got.c), "=d"(got.d) : "0"(leaf), "2"(part));
    return got;
}

// The registers that the system keeps for a process.
static u32 kept(void) {
    u32 low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Whether a process may use tiles of matrices, which it has to ask for: its threads then may as well.
static int may_use_tiles(void) {
    long answer;
    __asm__ volatile("syscall"
                     : "=a"(answer) : "0"((long)ARCH_PRCTL), "D"((long)ASK_FOR_STATE), "S"((long)TILE_DATA)
                     : "rcx", "r11", "memory");
    return answer == 0;
}

// A feature that widens vectors counts only where the system keeps the wide registers.
static void hide(u32 *words, const char *prefix) {
    for (u64 at = 0; at < sizeof features / sizeof *features; at++) {
        u64 k = 0;
        while (prefix[k] && prefix[k] == features[at].name[k]) k++;
        if (!prefix[k]) words[features[at].word] &= ~(1u << features[at].bit);
    }
}

// Whether any code of the library may use a feature: no word has a part of this one's name.
static int wanted(const char *name) {
    for (const char *at = ansor_deploy_codes; *at; at++) {
        u64 k = 0;
        while (name[k] && name[k] == at[k]) k++;
        if (!name[k]) return 1;
    }
    return 0;
}

static void look(u32 *words) {
    u32 most = cpuid(0, 0).a, state = 0;
    words[F1_ECX] = cpuid(1, 0).c;
    if (most >= 7) {
        registers seven = cpuid(7, 0);
        words[F7_EBX] = seven.b;
        words[F7_ECX] = seven.c;
        words[F7_EDX] = seven.d;
        if (seven.a >= 1) words[F7_1_EAX] = cpuid(7, 1).a;
    }
    if (cpuid(0x80000000u, 0).a >= 0x80000001u) words[F81_ECX] = cpuid(0x80000001u, 0).c;
    if (words[F1_ECX] >> OSXSAVE & 1) state = kept();
    if ((state & TILES) != TILES || !wanted("amx-tile") || !may_use_tiles()) hide(words, "amx");
    if ((state & ZMM) != ZMM) hide(words, "avx512");
    if ((state & YMM) == YMM) return;
    hide(words, "avx");
    hide(words, "f");  // fma, fma4, f16c
    hide(words, "xop");
}

static void name_of(char *name) {
    if (cpuid(0x80000000u, 0).a < 0x80000004u) return;
    for (u32 part = 0; part < 3; part++) {
        registers four = cpuid(0x80000002u + part, 0);
        __builtin_memcpy(name + part * sizeof four, &four, sizeof four);
    }
}

// Levels of x86-64, the highest first: what each adds to the next, and what to build for it.
static const char *const levels[][3] = {
    {"x86-64-v4", "avx512f avx512bw avx512cd avx512dq avx512vl", "--target intel-cpu-avx512"},
    {"x86-64-v3", "avx avx2 bmi bmi2 f16c fma lzcnt movbe", "--target intel-cpu-avx2"},
    {"x86-64-v2", "sse3 ssse3 sse4.1 sse4.2 popcnt", "a target of cpu = \"x86-64-v2\""},
    {"x86-64", "", "a target of cpu = \"x86-64\""},
};

#elif defined(__aarch64__)

u64 getauxval(u64 type);

enum { HWCAP, HWCAP2, WORDS, AT_HWCAP = 16, AT_HWCAP2 = 26 };

static const feature features[] = {
    {"neon", HWCAP, 1}, {"lse", HWCAP, 8}, {"fullfp16", HWCAP, 10}, {"rdm", HWCAP, 12},
    {"complxnum", HWCAP, 14}, {"rcpc", HWCAP, 15}, {"dotprod", HWCAP, 20}, {"sve", HWCAP, 22},
    {"fp16fml", HWCAP, 23}, {"sve2", HWCAP2, 1}, {"fptoint", HWCAP2, 8}, {"i8mm", HWCAP2, 13},
    {"bf16", HWCAP2, 14},
};

static void look(u32 *words) {
    words[HWCAP] = (u32)getauxval(AT_HWCAP);
    words[HWCAP2] = (u32)getauxval(AT_HWCAP2);
}

static void name_of(char *name) { (void)name; }

static const char *const levels[][3] = {{"aarch64", "", "a target without these features"}};

#endif

// The feature of a word that ends in a space, a semicolon or a zero; none of what is not generated.
static const feature *known(const char *word, u64 length) {
    for (u64 at = 0; at < sizeof features / sizeof *features; at++) {
        const char *name = features[at].name;
        u64 k = 0;
        while (k < length && k < sizeof features->name && name[k] == word[k]) k++;
        if (k == length && (k == sizeof features->name || !name[k])) return &features[at];
    }
    return 0;
}

static u64 length_of(const char *word) {
    u64 length = 0;
    while (word[length] && word[length] != ' ' && word[length] != ';') length++;
    return length;
}

// How many of these words' features the processor lacks; their names are written, if wanted.
static u32 lacks(const char *word, const u32 *has, char *names, u64 size) {
    u32 count = 0;
    u64 used = 0;
    for (u64 length; *word && *word != ';'; word += length + (word[length] == ' ')) {
        const feature *one = known(word, length = length_of(word));
        if (!one || has[one->word] >> one->bit & 1) continue;
        if (used < size)
            used += (u64)snprintf(names + used, size - used, "%s%.*s", count ? ", " : "",
                                  (int)length, word);
        count++;
    }
    return count;
}

// The highest level of which the processor has all, with all below it.
static const char *const *level(const u32 *has) {
    u64 at = sizeof levels / sizeof *levels - 1;
    while (at > 0 && !lacks(levels[at - 1][1], has, 0, 0)) at--;
    return levels[at];
}

static int refuse(const char *code, const u32 *has) {
    char names[400] = "", name[49] = "", text[700], *begin = name;
    const char *const *best = level(has);
    lacks(code, has, names, sizeof names);
    name_of(name);
    while (*begin == ' ') begin++;
    snprintf(text, sizeof text,
             "it is built for a processor with %s, which this one (%s%s%s) lacks; build it with %s, "
             "or for both in one file with --target A,B",
             names, begin, *begin ? ", " : "", best[0], best[2]);
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", text);
    return -1;
}

typedef struct { int type, zero; long number; } any;
enum { INTEGER = 1 };

// What stands before a code's features. A library of one code has as many threads from the start,
// one of several when it is first asked.
static const char *read_cores(const char *code, any *cores) {
    for (cores->number = 0; *code != ' '; code++) cores->number = cores->number * 10 + *code - '0';
    return code + 1;
}

static const char *next_code(const char *code) {
    while (*code && *code != ';') code++;
    return *code ? code + 1 : 0;
}

// A function of the library as tvm-ffi has them: the number of the first code that runs here. Given
// a number, it is that code or none. An error where the processor lacks something.
int __tvm_ffi_choose_code(void *self, const any *arguments, int count, any *result) {
    u32 has[WORDS] = {0};
    const char *code = ansor_deploy_codes, *last = 0;
    any cores = {INTEGER, 0, 0};
    static int set;
    int several = next_code(code) != 0;
    look(has);
    for (long at = 0; code; code = next_code(code), at++) {
        if (count == 1 && arguments[0].number != at) continue;
        last = read_cores(code, &cores);
        if (lacks(last, has, 0, 0)) continue;
        if (several && !set++ && __tvm_ffi_use_threads)
            __tvm_ffi_use_threads(self, &cores, 1, result);
        result->type = INTEGER;
        result->number = at;
        return 0;
    }
    if (last) return refuse(last, has);
    TVMFFIErrorSetRaisedFromCStr("RuntimeError", "it has no code of that number");
    return -1;
}

/* Memory that runs out: preloaded, it lets the n-th allocation by SQLite's library find none. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static long calls, first;    /* calls so far; the first that fails, or 0 */
static int forever;          /* whether all later calls fail, too */
static uintptr_t start, end; /* where the library's code lies */

static int find(struct dl_phdr_info *object, size_t size, void *none) {
    if (!strstr(object->dlpi_name, "sqlite3")) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        if (!strstr(object->dlpi_name, "libsqlite3") && start) continue;
        start = object->dlpi_addr + part->p_vaddr;
        end = start + part->p_memsz;
    }
    return 0;
}

void memory_fails(long at, int from_then_on) {
    if (!start) dl_iterate_phdr(find, NULL);
    calls = 0;
    first = at;
    forever = from_then_on;
}

long memory_calls(void) { return calls; }

static int fails(void *caller) {
    if ((uintptr_t)caller < start || (uintptr_t)caller >= end) return 0;
    calls++;
    if (!first || calls < first || (calls > first && !forever)) return 0;
    errno = ENOMEM;
    return 1;
}

extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);

void *malloc(size_t n) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}
void *realloc(void *p, size_t n) {
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n);
}

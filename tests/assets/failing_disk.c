/* A disk that fails: preloaded, it lets the n-th write, sync or truncation of a file whose path
 * holds "registry" fail with an error. Syncs that succeed do nothing, which only saves time.
 * Where the environment has DISK_FULL, every write to a file whose path holds that finds no space. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static long calls, first;  /* calls so far; the first that fails, or 0 */
static int error, forever; /* what it fails with; whether all later calls fail, too */

void disk_fails(long at, int with, int from_then_on) {
    calls = 0;
    first = at;
    error = with;
    forever = from_then_on;
}

long disk_calls(void) { return calls; }

static const char *path_of(int file) {
    static __thread char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

static int is_full(int file) {
    const char *full = getenv("DISK_FULL");
    if (!full || !strstr(path_of(file), full)) return 0;
    errno = ENOSPC;
    return 1;
}

static int fails(int file) {
    const char *path = path_of(file);
    if (!strstr(path, "registry")) return 0;
    calls++;
    if (!first || calls < first || (calls > first && !forever)) return 0;
    errno = error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int f, const void *b, size_t n) {
    return is_full(f) || fails(f) ? -1 : REAL(write)(f, b, n);
}
ssize_t pwrite(int f, const void *b, size_t n, off_t o) {
    return fails(f) ? -1 : REAL(pwrite)(f, b, n, o);
}
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) {
    return fails(f) ? -1 : REAL(pwrite64)(f, b, n, o);
}
int ftruncate(int f, off_t n) { return fails(f) ? -1 : REAL(ftruncate)(f, n); }
int ftruncate64(int f, off64_t n) { return fails(f) ? -1 : REAL(ftruncate64)(f, n); }
int fsync(int f) { return fails(f) ? -1 : 0; }
int fdatasync(int f) { return fails(f) ? -1 : 0; }

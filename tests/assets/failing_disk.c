/* A disk that fails: preloaded, it lets the n-th call fail with an error that opens, reads, writes,
 * syncs, truncates, links, renames or removes a file whose path holds "registry.db". The error -1 is
 * half a write, after which no write finds space. Syncs that succeed do nothing, which only saves
 * time. Where the environment has DISK_FULL, every write to a file whose path holds that finds no
 * space; where it has DISK_BAD, no byte at that offset of a "registry.db" can be read. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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

static int fails_at(const char *path) {
    if (!path || !strstr(path, "registry.db")) return 0;
    calls++;
    if (error < 0 || !first || calls < first || (calls > first && !forever)) return 0;
    errno = error;
    return 1;
}

static int fails(int file) { return fails_at(path_of(file)); }

static int is_bad(int file, size_t size, off64_t at) {
    const char *bad = getenv("DISK_BAD"), *path = bad ? path_of(file) : "";
    size_t length = strlen(path);
    if (length < 11 || strcmp(path + length - 11, "registry.db")) return 0;
    if (atoll(bad) < at || atoll(bad) >= at + (long long)size) return 0;
    errno = EIO;
    return 1;
}

/* How many bytes of a write the disk takes; -1 if the write fails. */
static ssize_t taken(int file, size_t size) {
    if (is_full(file) || fails(file)) return -1;
    if (error >= 0 || !first || calls < first || !strstr(path_of(file), "registry.db")) return size;
    errno = ENOSPC;
    return calls == first && size > 1 ? (ssize_t)(size / 2) : -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int f, const void *b, size_t n) {
    ssize_t size = taken(f, n);
    return size < 0 ? -1 : REAL(write)(f, b, size);
}
ssize_t pwrite(int f, const void *b, size_t n, off_t o) {
    ssize_t size = taken(f, n);
    return size < 0 ? -1 : REAL(pwrite)(f, b, size, o);
}
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) {
    ssize_t size = taken(f, n);
    return size < 0 ? -1 : REAL(pwrite64)(f, b, size, o);
}
ssize_t read(int f, void *b, size_t n) { return fails(f) ? -1 : REAL(read)(f, b, n); }
ssize_t pread(int f, void *b, size_t n, off_t o) {
    return fails(f) || is_bad(f, n, o) ? -1 : REAL(pread)(f, b, n, o);
}
ssize_t pread64(int f, void *b, size_t n, off64_t o) {
    return fails(f) || is_bad(f, n, o) ? -1 : REAL(pread64)(f, b, n, o);
}
int ftruncate(int f, off_t n) { return fails(f) ? -1 : REAL(ftruncate)(f, n); }
int ftruncate64(int f, off64_t n) { return fails(f) ? -1 : REAL(ftruncate64)(f, n); }
int fsync(int f) { return fails(f) ? -1 : 0; }
int fdatasync(int f) { return fails(f) ? -1 : 0; }
int unlink(const char *p) { return fails_at(p) ? -1 : REAL(unlink)(p); }
int link(const char *p, const char *q) { return fails_at(q) ? -1 : REAL(link)(p, q); }
int rename(const char *p, const char *q) { return fails_at(q) ? -1 : REAL(rename)(p, q); }

static int mode_of(int flags, va_list rest) { return flags & O_CREAT ? va_arg(rest, int) : 0; }

int open(const char *p, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = mode_of(flags, rest);
    va_end(rest);
    return fails_at(p) ? -1 : REAL(open)(p, flags, mode);
}
int open64(const char *p, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int mode = mode_of(flags, rest);
    va_end(rest);
    return fails_at(p) ? -1 : REAL(open64)(p, flags, mode);
}

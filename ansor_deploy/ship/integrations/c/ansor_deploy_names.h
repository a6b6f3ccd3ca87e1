/* Private to ansor_deploy.c: names of libraries for the system's loader, which goes by the name. Of
   a path at which another file is now it would give the one that was there: the old code, with the
   new weights. */
#ifndef ANSOR_DEPLOY_NAMES_H
#define ANSOR_DEPLOY_NAMES_H

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file that was loaded, and how many others were of its path before. They stay listed. */
typedef struct loaded {
    struct loaded *next;
    char *path;
    dev_t device;
    ino_t inode;
    size_t before;
} loaded;

static loaded *all_loaded;

/* Find a file in a list, or how many others of its path are there. */
static const loaded *find_loaded(const loaded *list, loaded *wanted) {
    wanted->before = 0;
    for (; list != NULL; list = list->next) {
        if (strcmp(list->path, wanted->path) != 0) continue;
        if (list->device == wanted->device && list->inode == wanted->inode) return list;
        if (list->before >= wanted->before) wanted->before = list->before + 1;
    }
    return NULL;
}

/* How many other files of a path were loaded before the one that is there; -1 if that is not known.
   Several threads may ask. */
static long others_before(const char *path) {
    struct stat file;
    loaded *made = (loaded *)calloc(1, sizeof *made);
    if (made == NULL || stat(path, &file) != 0 || (made->path = strdup(path)) == NULL) {
        free(made);
        return -1;
    }
    made->device = file.st_dev;
    made->inode = file.st_ino;
    made->next = __atomic_load_n(&all_loaded, __ATOMIC_ACQUIRE);
    do {
        const loaded *known = find_loaded(made->next, made);
        if (known != NULL) {
            free(made->path);
            free(made);
            return (long)known->before;
        }
    } while (!__atomic_compare_exchange_n(&all_loaded, &made->next, made, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return (long)made->before;
}

/* The real path of a library, with a "/." for each of the other files that were there; NULL, and
   errno, where there is none. */
static char *own_name(const char *path) {
    char *real = realpath(path, NULL); /* a bare name would be looked up elsewhere */
    long before = real == NULL ? -1 : others_before(real);
    char *made = before < 0 ? NULL : (char *)calloc(1, strlen(real) + 2 * (size_t)before + 1);
    if (made != NULL) {
        size_t folder = (size_t)(strrchr(real, '/') - real);
        memcpy(made, real, folder);
        for (; before > 0; before--)
            strcat(made, "/.");
        strcat(made, real + folder);
    }
    free(real);
    return made;
}

#endif

/* run_replaced LIBRARY NEW...: load a library, and each new one once it is in the first one's place;
   then run them all, x of two numbers, and print what each makes of 1 and -2. */
#include <stdio.h>

#include "ansor_deploy.h"

enum { MOST = 8 };

static int moved(const char *from, const char *to, const char *suffix) {
    char old[4096], now[4096];
    snprintf(old, sizeof old, "%s.%s", from, suffix);
    snprintf(now, sizeof now, "%s.%s", to, suffix);
    return rename(old, now);
}

int main(int argc, char **argv) {
    ansor_deploy_model *models[MOST];
    char library[4096];
    float x[] = {1.0f, -2.0f}, y[2];
    ansor_deploy_input inputs[] = {{"float32", x, sizeof x}};
    ansor_deploy_output outputs[] = {{"float32", y, sizeof y}};
    int bad = argc < 2 || argc > MOST;
    if (!bad) snprintf(library, sizeof library, "%s.so", argv[1]);
    for (int at = 1; !bad && at < argc; at++) {
        bad = at > 1 && (moved(argv[at], argv[1], "so") || moved(argv[at], argv[1], "json"));
        bad = bad || (models[at] = ansor_deploy_load(library)) == NULL;
    }
    for (int at = 1; !bad && at < argc; at++) {
        bad = ansor_deploy_run(models[at], inputs, 1, outputs, 1) != 0;
        if (!bad) printf("%g %g\n", y[0], y[1]);
        ansor_deploy_free(models[at]);
    }
    if (bad) fprintf(stderr, "error: %s\n", ansor_deploy_last_error());
    return bad;
}

#define _GNU_SOURCE
#include "support/platform.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80 };

double clock_seconds(void) {
    struct timespec t;
    return clock_gettime(CLOCK_MONOTONIC, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
                                                   : 0;
}

size_t memory_peak(void) {
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0)
        return 0;
#ifdef __APPLE__
    return (size_t)use.ru_maxrss;
#else
    return (size_t)use.ru_maxrss * 1024;
#endif
}

bool stream_is_terminal(FILE *f) {
    return isatty(fileno(f));
}

int stream_columns(FILE *f) {
    struct winsize w;
    return ioctl(fileno(f), TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : USUAL_COLUMNS;
}

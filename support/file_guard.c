/* Mapped files that somebody makes shorter while they are read: the pages behind their new end are
 * no more, and touching one is SIGBUS. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/file.h"

/* Global, as a handler is handed nothing but the signal. */
static atomic_bool met;

/* Puts zeros where the file was, so that the run goes on to its end, which finds out. BUS_ADRERR is
 * only of pages that a file should have filled. mmap is a system call and no more, so it may be
 * called here. */
static void on_missing_page(int sig, siginfo_t *info, void *context) {
    (void)context;
    atomic_store(&met, true);
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr & ~(size - 1);
    if (info->si_code != BUS_ADRERR ||
        mmap((void *)at, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
        signal(sig, SIG_DFL); /* and the same again */
}

bool file_guard_met(void) {
    return atomic_load(&met);
}

void file_guard(void) {
    struct sigaction act = {.sa_sigaction = on_missing_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &act, NULL);
}

/* Which mutant runs: QXC_MUTANT is its number. With QXC_MUTANT_TRACE=FILE none does, and FILE tells
 * which ones were reached. Appended to the first file that tools/mutate rewrites, so that it is in
 * the library. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { QXC_MUTANTS = 1 << 16 };
#define QXC_MUTANT_MEMORY (8ull << 30) /* bytes, as a mutant may ask for any amount */

int qxc_mutant;
unsigned char *qxc_mutant_traced;

__attribute__((constructor)) static void qxc_mutant_choose(void) {
    const char *number = getenv("QXC_MUTANT"), *trace = getenv("QXC_MUTANT_TRACE");
    if (!number && !trace)
        return;
    struct rlimit memory = {QXC_MUTANT_MEMORY, QXC_MUTANT_MEMORY};
    setrlimit(RLIMIT_AS,
              &memory); /* here, not for the whole test: programs with ASan reserve far more */
    if (number)
        qxc_mutant = atoi(number);
    if (!trace)
        return;
    /* Shared, so that all processes of a test write to it, those that die as well. */
    int file = open(trace, O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, QXC_MUTANTS) != 0)
        abort();
    qxc_mutant_traced = mmap(NULL, QXC_MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (qxc_mutant_traced == MAP_FAILED)
        abort();
    close(file);
}

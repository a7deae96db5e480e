/* qxc: the only place that decides how the process ends. */
#include "compiler/session.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Descriptors 0 to 2 that whoever started us has closed must not become files of ours: messages
 * would land in them. What stands there instead is open for the other direction: it can be neither
 * read nor written. */
static void occupy_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && (fd != STDIN_FILENO || open("/dev/null", O_WRONLY) < 0))
            open("/", O_RDONLY); /* the lowest number that is free */
}

int main(int argc, char **argv) {
    occupy_descriptors();
    out_catch_signals();
    file_guard();
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error, not the end */
    ExitCode code = session_run(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        fputs("qxc: error: cannot write to standard output\n", stderr);
        code = code == EXIT_DONE ? EXIT_IO : code;
    }
    return code;
}

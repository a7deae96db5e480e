#include "support/child.h"
#include "support/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void children_begin(Children *c) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    c->interrupted = false;
    sigemptyset(&c->taken);
    sigaddset(&c->taken, SIGCHLD);
    sigaddset(&c->taken, SIGINT);
    sigaddset(&c->taken, SIGTERM);
    sigaddset(&c->taken, SIGHUP);
    sigprocmask(SIG_BLOCK, &c->taken, &c->before);
    sigaction(SIGCHLD, &usual, &c->on_child); /* whoever started us may have it ignored */
}

void children_end(Children *c) {
    sigaction(SIGCHLD, &c->on_child, NULL);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
}

pid_t child_start(Children *c) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        process_follow(parent, SIGKILL);
        sigprocmask(SIG_SETMASK, &c->before, NULL);
    } else if (pid > 0) {
        setpgid(pid, pid); /* in both, whichever comes first */
    }
    return pid;
}

static struct timespec now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t;
}

/* What is left until `end`, not below zero. */
static struct timespec left(struct timespec end) {
    struct timespec t = now();
    int64_t ns = (int64_t)(end.tv_sec - t.tv_sec) * 1000000000 + (end.tv_nsec - t.tv_nsec);
    if (ns < 0)
        ns = 0;
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

void children_kill(const pid_t *of, size_t n) {
    for (size_t i = 0; i < n; i++)
        kill(-of[i], SIGKILL);
    for (size_t i = 0; i < n; i++)
        while (waitpid(of[i], NULL, 0) < 0 && errno == EINTR)
            ;
}

static int end_groups(const pid_t *of, size_t n, int result) {
    children_kill(of, n);
    return result;
}

/* Whether it has ended, without waiting. */
static bool has_ended(pid_t child, int *result) {
    int status;
    if (waitpid(child, &status, WNOHANG) != child)
        return false;
    kill(-child, SIGKILL); /* what it left running behind */
    *result = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

int child_wait_any(Children *c, const pid_t *of, size_t n, int64_t seconds, size_t *which) {
    struct timespec end = now();
    end.tv_sec += seconds;
    for (;;) {
        int result;
        for (size_t i = 0; i < n; i++)
            if (has_ended(of[i], &result)) {
                *which = i;
                return result;
            }
        struct timespec rest = left(end);
        int got = signal_take(&c->taken, seconds ? &rest : NULL);
        if (got < 0 && errno == EAGAIN)
            return end_groups(of, n, CHILD_TIMEOUT);
        if (got > 0 && got != SIGCHLD) {
            c->interrupted = true;
            return end_groups(of, n, CHILD_INTERRUPTED);
        }
    }
}

int child_wait(Children *c, pid_t child, int64_t seconds) {
    size_t which;
    return child < 0 ? CHILD_FAILED : child_wait_any(c, &child, 1, seconds, &which);
}

/* `out`: of its output; -1: nobody wants it, nor its messages. */
static _Noreturn void run_shell(const char *command, const char *argument, int out) {
    int in = open("/dev/null", O_RDWR);
    bool silent = out < 0;
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(silent ? in : out, STDOUT_FILENO) < 0 ||
        (silent && dup2(in, STDERR_FILENO) < 0))
        _exit(127);
    execl("/bin/sh", "sh", "-c", command, "sh", argument, (char *)NULL);
    _exit(127);
}

static void end_own_group(int sig) {
    (void)sig;
    kill(0, SIGKILL);
}

/* What the shell starts does not learn that we are gone. So a process stands between, which does,
 * and which has the whole group with it. */
static _Noreturn void watch_shell(pid_t parent, const char *command, const char *argument,
                                  int out) {
    struct sigaction end = {.sa_handler = end_own_group}, before;
    sigset_t only, mask;
    sigemptyset(&only);
    sigaddset(&only, SIGUSR1);
    sigaction(SIGUSR1, &end, &before);
    sigprocmask(SIG_UNBLOCK, &only, &mask);
    process_follow(parent, SIGUSR1);
    int status = 0;
    pid_t shell = fork();
    if (shell == 0) {
        sigaction(SIGUSR1, &before, NULL);
        sigprocmask(SIG_SETMASK, &mask, NULL);
        run_shell(command, argument, out);
    }
    while (shell > 0 && waitpid(shell, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(shell < 0 ? 127 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

int child_shell_to(Children *c, const char *command, const char *argument, int out,
                   int64_t seconds) {
    if (c->interrupted)
        return CHILD_INTERRUPTED;
    pid_t parent = getpid(), child = child_start(c);
    if (child == 0)
        watch_shell(parent, command, argument, out);
    return child_wait(c, child, seconds);
}

int child_shell(Children *c, const char *command, const char *argument, bool silent,
                int64_t seconds) {
    return child_shell_to(c, command, argument, silent ? -1 : STDERR_FILENO, seconds);
}

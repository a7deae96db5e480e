/* Child processes that are waited for with a limit and end on Ctrl-C, all they started included.
 * They end with this process, too, even where that is killed, if the system tells them.
 *
 * Between children_begin and children_end SIGCHLD, SIGINT, SIGTERM and SIGHUP are blocked in this
 * process and taken in child_wait, so that the caller gets to clean up. Several children at a time
 * are waited for together, by child_wait_any. */
#ifndef QXC_SUPPORT_CHILD_H
#define QXC_SUPPORT_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Children {
    sigset_t taken, before;
    struct sigaction on_child;
    bool interrupted; /* a signal asked this process to end; no child is started any more */
} Children;

/* How a child ended: its exit status, 128 + the signal that killed it (as a shell says it), or one
 * of these. */
enum { CHILD_TIMEOUT = -1, CHILD_INTERRUPTED = -2, CHILD_FAILED = -3 /* errno is set */ };

void children_begin(Children *c);
void children_end(Children *c);

/* fork(), with a process group of its own and the signals as they were. 0 in the child. */
pid_t child_start(Children *c);
/* Waits; after `seconds` (0: no limit) or a signal the child's group is killed. */
int child_wait(Children *c, pid_t child, int64_t seconds);
/* Waits for the first of several to end, and says which. After `seconds` or a signal the groups of
 * all are killed. */
int child_wait_any(Children *c, const pid_t *of, size_t n, int64_t seconds, size_t *which);
/* Kills the groups of all, and waits for them. */
void children_kill(const pid_t *of, size_t n);
/* Runs `sh -c command sh argument`, without standard input. Its output goes to our stderr, or
 * nowhere with `silent`. */
int child_shell(Children *c, const char *command, const char *argument, bool silent,
                int64_t seconds);
/* The same, with its output to the descriptor `out`. */
int child_shell_to(Children *c, const char *command, const char *argument, int out,
                   int64_t seconds);

#endif

/* What only some systems have: everything that is neither C nor POSIX is asked for here, and the
 * rest of the tree does not know which system it runs on. Elsewhere each function has an answer
 * that costs no more than comfort, which its comment names. */
#ifndef QXC_SUPPORT_PLATFORM_H
#define QXC_SUPPORT_PLATFORM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

struct stat;

/* ---- time, memory, processors, terminals ---- */

/* Seconds from some start on, which nobody sets back. */
double clock_seconds(void);
/* The most memory that this process has had so far, in bytes; 0 where the system does not say. */
size_t memory_peak(void);
/* Memory of zeros that this process and its children share, which memory_unshare gives back. NULL
 * with errno. */
void *memory_share(size_t n);
void memory_unshare(void *p, size_t n);
/* How many processors this process may use; all of them where the system does not say. */
int processors_usable(void);
bool stream_is_terminal(FILE *f);
/* How many columns that terminal has; 80 where it does not say. */
int stream_columns(FILE *f);

/* ---- files ---- */

/* An empty file that has no place in any folder and goes with its descriptor; -1 with errno. */
int file_in_memory(const char *name);
/* Whether two looks at a file found the same time of its last change. */
bool file_same_time(const struct stat *a, const struct stat *b);
/* Starts writing these bytes of the file to the disk, and does not wait. Pipes and some systems
 * refuse, which costs nothing. */
void file_send(int fd, off_t from, off_t n);

/* Sees to it that the disk has room for these bytes of the file, whose contents stay. False, with
 * errno, where it has not. Where a system or a kind of file system cannot tell, it is true, and
 * writing them says so later. */
bool file_reserve(int fd, off_t from, off_t n);

/* What a stream does with bytes, as the first member of what it needs for it. */
typedef struct Stream {
    /* Gives how many bytes were written; fewer than n, with errno, are an error. */
    size_t (*write)(struct Stream *s, const char *p, size_t n);
    int (*close)(struct Stream *s); /* called by fclose, which gives what it gives */
} Stream;
/* One to be written; `s` stays until fclose. NULL with errno. */
FILE *stream_new(Stream *s);

/* ---- processes ---- */

/* From now on the signal comes when the parent is gone, whatever ended it. Where the system cannot
 * tell, it comes only if the parent is gone already. */
void process_follow(pid_t parent, int signal);
/* Takes one of the signals, which are blocked, and waits for it for `most`, for ever where that is
 * NULL. -1 with EAGAIN once that is over; 0 where a look is due whether a child has ended, of which
 * not every system sends a signal that is blocked. */
int signal_take(const sigset_t *of, const struct timespec *most);

#endif

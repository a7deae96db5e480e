/* The streams of output files: they know why a write failed, hash what goes through them, and send
 * it to the disk early. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "support/file_out.h"

/* Starts writing to the disk what there is of a large file, so that there is less to wait for once
 * all of it is there. Pipes and some file systems refuse, which costs nothing. */
static void send_ahead(Sink *s) {
    enum { AHEAD = 8 << 20 };
    if (!s->ahead || s->size - s->sent < AHEAD)
        return;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(s->fd, s->sent, s->size - s->sent, SYNC_FILE_RANGE_WRITE);
#endif
    s->sent = s->size;
}

static ssize_t sink_write(void *cookie, const char *p, size_t n) {
    Sink *s = cookie;
    size_t done = 0;
    while (done < n) {
        ssize_t k = write(s->fd, p + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            s->error = s->error ? s->error : errno;
        if (k <= 0)
            break;
        if (s->hashed)
            sha256_more(&s->hash, p + done, (size_t)k);
        done += (size_t)k;
        s->size += k;
        send_ahead(s);
    }
    return (ssize_t)done;
}

static int sink_close(void *cookie) {
    Sink *s = cookie;
    int failed = close(s->fd);
    if (failed && !s->error)
        s->error = errno;
    return failed;
}

FILE *sink_stream(Sink *s) {
    return fopencookie(s, "w", (cookie_io_functions_t){.write = sink_write, .close = sink_close});
}

/* The streams of output files: they know why a write failed, hash what goes through them, and send
 * it to the disk early. */
#include <errno.h>
#include <unistd.h>

#include "support/file_out.h"
#include "support/parallel.h"

/* So that there is less to wait for once all of a large file is there. */
static void send_ahead(Sink *s) {
    enum { AHEAD = 8 << 20 };
    if (!s->ahead || s->size - s->sent < AHEAD)
        return;
    file_send(s->fd, s->sent, s->size - s->sent);
    s->sent = s->size;
}

typedef struct Part {
    Sink *s;
    const char *p;
    size_t n;
    size_t written;
} Part;

static void write_part(Part *part) {
    Sink *s = part->s;
    while (part->written < part->n) {
        ssize_t k = write(s->fd, part->p + part->written, part->n - part->written);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            s->error = s->error ? s->error : errno;
        if (k <= 0)
            break;
        part->written += (size_t)k;
        s->size += k;
        send_ahead(s);
    }
}

enum { WRITE, HASH, TASKS };

static void do_tasks(void *ctx, size_t from, size_t to, int worker) {
    Part *part = ctx;
    (void)worker;
    for (size_t task = from; task < to; task++)
        if (task == WRITE)
            write_part(part);
        else /* of a file that is not written whole nobody asks for the hash */
            sha256_more(&part->s->hash, part->p, part->n);
}

/* What is large is hashed while it is written. */
static size_t sink_write(Stream *stream, const char *p, size_t n) {
    enum { LARGE = 1 << 20 };
    Part part = {(Sink *)stream, p, n, 0};
    size_t tasks = part.s->hashed ? TASKS : WRITE + 1;
    if (n >= LARGE)
        parallel_tasks(tasks, do_tasks, &part);
    else
        do_tasks(&part, WRITE, tasks, 0);
    return part.written;
}

static int sink_close(Stream *stream) {
    Sink *s = (Sink *)stream;
    int failed = close(s->fd);
    if (failed && !s->error)
        s->error = errno;
    return failed;
}

FILE *sink_stream(Sink *s) {
    s->stream = (Stream){sink_write, sink_close};
    return stream_new(&s->stream);
}

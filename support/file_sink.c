/* The streams of output files: they know why a write failed, hash what goes through them, and send
 * it to the disk early. */
#include <errno.h>
#include <unistd.h>

#include "support/file_out.h"

/* So that there is less to wait for once all of a large file is there. */
static void send_ahead(Sink *s) {
    enum { AHEAD = 8 << 20 };
    if (!s->ahead || s->size - s->sent < AHEAD)
        return;
    file_send(s->fd, s->sent, s->size - s->sent);
    s->sent = s->size;
}

static size_t sink_write(Stream *stream, const char *p, size_t n) {
    Sink *s = (Sink *)stream;
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
    return done;
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

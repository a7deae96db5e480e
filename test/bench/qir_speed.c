/* How fast .qir text without large constants is read and printed: a chain of quantized
 * convolutions with names, attributes and provenance, as an exporter writes them. With a path, that
 * text is taken instead; a number of rounds may follow. Prints, for reading and for printing, bytes
 * and the least and the median processor time in milliseconds, then the peak memory in bytes. See
 * qir_speed.sh. */
#include "backend/qir/qir_write.h"
#include "frontend/qir/qir_read.h"

#include <stdlib.h>
#include <time.h>

/* Processor time: other programs do not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_block(Buf *b, int i) {
    const char *from = i ? "/Relu_output_0" : "";
    buf_fmt(b, "  %%/layers.%d/Conv_output_0 : !layers.%d[N,64,56,56] = Conv(%%", i, i);
    if (i)
        buf_fmt(b, "/layers.%d%s", i - 1, from);
    else
        buf_text(b, "input");
    buf_fmt(b,
            ", %%layers.%d.weight, %%layers.%d.bias) <dilations=[1, 1], group=1, kernel_shape=[3, "
            "3], pads=[1, 1, 1, 1], strides=[1, 1]> name \"/layers.%d/Conv\" "
            "from(Conv \"/layers.%d/Conv\", BatchNormalization \"/layers.%d/BatchNormalization\") "
            "by \"fold-affine\"\n",
            i, i, i, i, i);
    buf_fmt(b,
            "  %%/layers.%d/Relu_output_0 : !layers.%d[N,64,56,56] = Relu(%%/layers.%d/Conv_output_"
            "0) name \"/layers.%d/Relu\"\n",
            i, i, i, i);
}

static Str make_text(Arena *a, int blocks) {
    Buf b = buf_new(a);
    buf_text(&b, "qir 1\nimport \"\" 21\nmodel <ir_version=10, producer_name=\"bench\">\n\n");
    for (int i = 0; i < blocks; i++)
        buf_fmt(&b, "quant !layers.%d = uint8q<0.0%d, %d>\n", i, 1000001 + i * 10, i % 255 + 1);
    buf_text(&b, "\ngraph @main (%input : uint8q<0.017, 114>[N,64,56,56]) -> (%/layers.");
    buf_fmt(&b, "%d/Relu_output_0) inferred {\n", blocks - 1);
    for (int i = 0; i < blocks; i++) {
        buf_fmt(&b, "  const %%layers.%d.weight : int8[64,64,3,3] = elided(\"crc32:%08x\")\n", i,
                i);
        buf_fmt(&b, "  const %%layers.%d.bias : int32[4] = [%d, -%d, 17, 4]\n", i, 3 * i,
                7 * i + 1);
    }
    buf_byte(&b, '\n');
    for (int i = 0; i < blocks; i++)
        put_block(&b, i);
    buf_byte(&b, '\n');
    for (int i = 0; i < blocks; i++)
        buf_fmt(&b, "  stat %%/layers.%d/Conv_output_0 <min=-3.%d1, max=4.%d1, avg=0.%d1>\n", i,
                1000 + i, 2000 + i, 5000 + i);
    buf_text(&b, "}\n");
    return buf_as_str(&b);
}

static Str load(Arena *a, Diags *d, const char *path) {
    FileMap *f = file_map(path, LOC_NONE, d);
    return f ? arena_str(a, file_bytes(f)) : STR_NONE;
}

static int by_size(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void report(const char *what, size_t bytes, double *seconds, size_t n) {
    qsort(seconds, n, sizeof *seconds, by_size);
    printf("%-5s %6.1f MB/s  (%zu bytes, best %.2f ms, median %.2f ms)\n", what,
           (double)bytes / seconds[0] / 1e6, bytes, seconds[0] * 1e3, seconds[n / 2] * 1e3);
}

/* Of this program, where Linux tells; getrusage() would count the one that started it, too. */
static size_t peak_memory(void) {
    char line[128];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %zu kB", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return kib * 1024;
}

int main(int argc, char **argv) {
    enum { BLOCKS = 20000, MOST = 100 };
    Arena *mine = arena_new(0, NULL);
    Diags *d = diags_new(mine, stderr, false);
    const char *path = argc > 1 ? argv[1] : "bench.qir";
    int rounds = argc > 2 ? atoi(argv[2]) : 7;
    Str text = argc > 1 ? load(mine, d, path) : make_text(mine, BLOCKS);
    double read[MOST], print[MOST];
    size_t printed = 0, before = peak_memory();
    if (!text.s || rounds < 1 || rounds > MOST)
        return 1;
    for (int i = 0; i < rounds; i++) {
        Arena *a = arena_new(0, NULL);
        double t0 = now();
        Module *m = qir_read_text(a, d, path, text, NULL);
        double t1 = now();
        if (!m)
            return 1;
        Buf b = buf_new(a);
        qir_print(m, &b, NULL);
        read[i] = t1 - t0;
        print[i] = now() - t1;
        printed = b.n;
        if (argc == 1 && !str_eq(text, buf_as_str(&b)))
            return fprintf(stderr, "the printed text differs from what was read\n"), 1;
        module_free(m);
    }
    report("read", text.n, read, (size_t)rounds);
    report("print", printed, print, (size_t)rounds);
    printf("peak  %zu bytes\n", peak_memory() - before);
    arena_free(mine);
    return 0;
}

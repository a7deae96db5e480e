/* Reads the digits of test.npz with the network that qxc compiled to C, and counts what is right.
 *
 *     qxc digits.qir -emit=c -name=digits -o digits.c
 *     cc -O3 -march=native eval.c digits.c -o eval
 *     ./eval test.npz [LOGITS.npz...]
 *
 * Each LOGITS.npz is what `qxc run -o` wrote; its accuracy is printed too, and whether it equals
 * that of the C bit for bit. Exit status 1 when a file cannot be read; 2 when the network fails.
 *
 * An .npz file is a zip of .npy files. These are stored without compression, so both headers can
 * be read by hand. */
#include "digits.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIXELS = 64, CLASSES = 10 };

static uint32_t little(const unsigned char *p, int bytes) {
    uint32_t v = 0;
    while (bytes--)
        v = v << 8 | p[bytes];
    return v;
}

static unsigned char *read_file(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    unsigned char *data = NULL;
    long end;
    if (f && fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) > 0) {
        rewind(f);
        data = malloc((size_t)end);
        *size = data ? fread(data, 1, (size_t)end, f) : 0;
    }
    if (f)
        fclose(f);
    if (!data)
        fprintf(stderr, "%s: cannot be read\n", path);
    return data;
}

/* The elements of one array in the archive; *bytes gets their size. NULL after a message. */
static const void *array(const char *path, const char *name, const char *dtype, size_t *bytes) {
    enum { LOCAL_HEADER = 30, NPY_HEADER = 10 };
    size_t size, at = 0;
    unsigned char *zip = read_file(path, &size);
    while (zip && at + LOCAL_HEADER <= size && memcmp(zip + at, "PK\3\4", 4) == 0) {
        const unsigned char *entry = zip + at;
        size_t length = little(entry + 18, 4), n = little(entry + 26, 2);
        size_t start = at + LOCAL_HEADER + n + little(entry + 28, 2);
        if (start > size || length > size - start || little(entry + 8, 2) != 0 ||
            length < NPY_HEADER)
            break;
        if (n == strlen(name) && memcmp(entry + LOCAL_HEADER, name, n) == 0) {
            size_t header = NPY_HEADER + little(zip + start + 8, 2);
            char text[256] = {0};
            if (header > length)
                break;
            memcpy(text, zip + start + NPY_HEADER,
                   header - NPY_HEADER < sizeof text ? header - NPY_HEADER : sizeof text - 1);
            if (!strstr(text, dtype))
                break;
            *bytes = length - header;
            return zip + start + header;
        }
        at = start + length;
    }
    if (zip)
        fprintf(stderr, "%s: no stored array %s of type %s\n", path, name, dtype);
    return NULL;
}

static size_t count_right(const float *logits, const int64_t *labels, size_t n) {
    size_t right = 0;
    for (size_t i = 0; i < n; i++) {
        const float *row = logits + i * CLASSES;
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (row[c] > row[best])
                best = c;
        right += best == (int)labels[i];
    }
    return right;
}

static void report(const char *what, const float *logits, const int64_t *labels, size_t n) {
    size_t right = count_right(logits, labels, n);
    printf("%-28s %zu of %zu right, %.2f %%", what, right, n, 100.0 * (double)right / (double)n);
}

/* Runs the network on every image; false when it reports an error. */
static int run_all(const float *images, float *logits, size_t n) {
    static int64_t arena[(DIGITS_ARENA_SIZE + 63) / 64 * 8 + 8];
    uintptr_t aligned = ((uintptr_t)arena + 63) / 64 * 64;
    for (size_t i = 0; i < n; i++)
        if (digits_run((void *)aligned, images + i * PIXELS, logits + i * CLASSES) != 0)
            return 0;
    return 1;
}

int main(int argc, char **argv) {
    size_t image_bytes, label_bytes, bytes;
    const void *images, *stored;
    if (argc < 2 || !(images = array(argv[1], "image.npy", "'<f4'", &image_bytes)) ||
        !(stored = array(argv[1], "labels.npy", "'<i8'", &label_bytes)))
        return 1;
    size_t n = label_bytes / sizeof(int64_t);
    int64_t *labels = malloc(label_bytes);
    float *pixels = malloc(image_bytes), *logits = malloc(n * CLASSES * sizeof(float));
    if (!labels || !pixels || !logits || image_bytes != n * PIXELS * sizeof(float))
        return 1;
    memcpy(labels, stored, label_bytes); /* the archive does not align them */
    memcpy(pixels, images, image_bytes);

    clock_t start = clock();
    if (!run_all(pixels, logits, n)) {
        fputs("digits_run reports an error\n", stderr);
        return 2;
    }
    double spent = (double)(clock() - start) / CLOCKS_PER_SEC;
    report("int8 C", logits, labels, n);
    printf(", %.1f us an image\n", 1e6 * spent / (double)n);

    for (int i = 2; i < argc; i++) {
        const void *theirs = array(argv[i], "logits.npy", "'<f4'", &bytes);
        float *copy = malloc(n * CLASSES * sizeof(float));
        if (!theirs || !copy || bytes != n * CLASSES * sizeof(float))
            return 1;
        memcpy(copy, theirs, bytes);
        report(argv[i], copy, labels, n);
        puts(memcmp(copy, logits, bytes) == 0 ? ", equal to the C bit for bit" : "");
        free(copy);
    }
    free(labels);
    free(pixels);
    free(logits);
    return 0;
}

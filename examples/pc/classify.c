/* Reads 8x8 images of handwritten digits, plain PGM files, and says which digit each shows.
 *
 *     ./classify two.pgm seven.pgm
 *
 * Exit status 1 when a file is no such image, 2 when the model reports an error. */
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 8 };

/* Pixels become 0..1, as in training. */
static int read_pgm(const char *path, float pixels[DIGITS_IMAGE_COUNT]) {
    int width, height, most, value, i = 0;
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "P2 %d %d %d", &width, &height, &most) == 3 && width == SIDE && height == SIDE &&
        most > 0)
        while (i < SIDE * SIDE && fscanf(f, "%d", &value) == 1)
            pixels[i++] = (float)value / (float)most;
    fclose(f);
    return i == SIDE * SIDE;
}

static int largest(const float *values, int n) {
    int best = 0, i;
    for (i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

int main(int argc, char **argv) {
    /* malloc aligns for any type, which on a PC is the 16 bytes of DIGITS_ARENA_ALIGN. */
    void *arena = malloc(DIGITS_ARENA_SIZE);
    float pixels[DIGITS_IMAGE_COUNT], logits[DIGITS_LOGITS_COUNT];
    int i, status;
    for (i = 1; i < argc; i++) {
        if (!read_pgm(argv[i], pixels)) {
            fprintf(stderr, "%s: no plain PGM of 8x8 pixels\n", argv[i]);
            return 1;
        }
        status = digits_run(arena, pixels, logits);
        if (status != DIGITS_OK) {
            fprintf(stderr, "digits_run returned %d\n", status);
            return 2;
        }
        printf("%s: %d\n", argv[i], largest(logits, DIGITS_LOGITS_COUNT));
    }
    free(arena);
    return 0;
}

/* Reads one digit with the model of the module and prints it. */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <digits.h>

#ifndef CONFIG_QXC_DIGITS
#error "prj.conf has to say CONFIG_QXC_DIGITS=y"
#endif

/* 8x8 pixels, 0..16: a two. */
static const uint8_t image[DIGITS_IMAGE_COUNT] = {
    /* clang-format off */
    0, 0, 8, 15, 15, 2, 0, 0,
    0, 2, 16, 13, 12, 10, 0, 0,
    0, 3, 15, 1, 9, 11, 0, 0,
    0, 0, 0, 1, 15, 8, 0, 0,
    0, 0, 0, 10, 13, 1, 0, 0,
    0, 0, 8, 16, 7, 0, 0, 0,
    0, 6, 16, 16, 13, 7, 6, 1,
    0, 0, 7, 5, 12, 16, 15, 2,
    /* clang-format on */
};

static uint8_t arena[DIGITS_ARENA_SIZE] __aligned(DIGITS_ARENA_ALIGN);

int main(void) {
    int8_t pixels[DIGITS_IMAGE_COUNT], logits[DIGITS_LOGITS_COUNT];
    int best = 0;
    /* The input's grid has a step of 1/255, see digits.h; a pixel of 0..16 is 255/16 of it. */
    for (int i = 0; i < DIGITS_IMAGE_COUNT; i++)
        pixels[i] = (int8_t)((image[i] * 255 + 8) / 16 + DIGITS_IMAGE_ZERO_POINT);

    uint32_t start = k_cycle_get_32();
    int status = digits_run(arena, pixels, logits);
    uint32_t spent = k_cycle_get_32() - start;
    if (status != DIGITS_OK) {
        printk("digits_run returned %d\n", status);
        return 0;
    }
    for (int i = 1; i < DIGITS_LOGITS_COUNT; i++)
        if (logits[i] > logits[best])
            best = i;
    printk("digit %d, %u cycles\n", best, (unsigned)spent);
    return 0;
}

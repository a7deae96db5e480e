// Reads one digit a second and prints it with the time that takes.
#include <digits.h>

// 8x8 pixels, 0..16: a seven.
static const uint8_t image[DIGITS_IMAGE_COUNT] = {
    0, 0, 8, 16, 14, 15, 0, 0,
    0, 0, 13, 11, 15, 11, 0, 0,
    0, 4, 14, 1, 13, 5, 0, 0,
    0, 3, 7, 8, 16, 4, 3, 0,
    0, 0, 14, 16, 16, 13, 7, 0,
    0, 0, 5, 13, 2, 0, 0, 0,
    0, 0, 6, 10, 0, 0, 0, 0,
    0, 0, 10, 6, 0, 0, 0, 0,
};

// The model's memory: aligned as digits.h asks for, and reusable between runs.
alignas(DIGITS_ARENA_ALIGN) static uint8_t arena[DIGITS_ARENA_SIZE];

void setup() {
    Serial.begin(115200);
}

void loop() {
    int8_t pixels[DIGITS_IMAGE_COUNT], logits[DIGITS_LOGITS_COUNT];
    // Without floating point digits.h states the input's scale as MANTISSA * 2^EXPONENT. Here pixels
    // 0..1 become -128..127, so a pixel of 0..16 is 255/16 of a step.
    for (int i = 0; i < DIGITS_IMAGE_COUNT; i++)
        pixels[i] = (int8_t)((image[i] * 255 + 8) / 16 + DIGITS_IMAGE_ZERO_POINT);

    unsigned long start = micros();
    int status = digits_run(arena, pixels, logits);
    unsigned long spent = micros() - start;
    if (status != DIGITS_OK) {
        Serial.print("digits_run returned ");
        Serial.println(status);
        return;
    }
    int best = 0;
    for (int i = 1; i < DIGITS_LOGITS_COUNT; i++)
        if (logits[i] > logits[best])
            best = i;
    Serial.print("digit ");
    Serial.print(best);
    Serial.print(", microseconds: ");
    Serial.println(spent);
    delay(1000);
}

"""Emitted C in larger programs: two models in one, and one model in several threads at once."""

import subprocess

import numpy as np

from common import WARNINGS, DIGITS, OracleCase, compile_c, for_each, qxc, qxc_outputs

FORMS = {"one": ("-requant=exact",), "two": ("-requant=single", "-weights=int4 sym")}

# Threads take turns at nothing: each runs both models on all samples, from another one on, often.
PROGRAM = r"""
#define _POSIX_C_SOURCE 200112L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "one.h"
#include "two.h"

enum { SAMPLES = 40, THREADS = 4, ROUNDS = 5 };
static float in[SAMPLES][ONE_IMAGE_COUNT], want[2][SAMPLES][ONE_LOGITS_COUNT];

static void *work(void *first) {
    void *arena = NULL;
    float out[ONE_LOGITS_COUNT];
    size_t size = ONE_ARENA_SIZE > TWO_ARENA_SIZE ? ONE_ARENA_SIZE : TWO_ARENA_SIZE, wrong = 0;
    int i;
    if (posix_memalign(&arena, ONE_ARENA_ALIGN, size))
        return first;
    for (i = 0; i < SAMPLES * ROUNDS; i++) {
        size_t sample = (*(size_t *)first + (size_t)i) % SAMPLES;
        wrong += one_run(arena, in[sample], out) != ONE_OK || memcmp(out, want[0][sample], sizeof out);
        wrong += two_run(arena, in[sample], out) != TWO_OK || memcmp(out, want[1][sample], sizeof out);
    }
    free(arena);
    *(size_t *)first = wrong;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    size_t state[THREADS], i, wrong = 0;
    if (fread(in, sizeof in, 1, stdin) != 1 || fread(want, sizeof want, 1, stdin) != 1)
        return 2;
    for (i = 0; i < THREADS; i++) {
        state[i] = i * SAMPLES / THREADS;
        if (pthread_create(&threads[i], NULL, work, &state[i]))
            return 3;
    }
    for (i = 0; i < THREADS; i++) {
        void *failed = NULL;
        pthread_join(threads[i], &failed);
        wrong += failed ? 1 : state[i];
    }
    printf("%lu wrong\n", (unsigned long)wrong);
    return wrong != 0;
}
"""
BUILDS = {"gcc": ("gcc", "-O2"), "gcc-native": ("gcc", "-O3", "-march=native"),
          "threads": ("gcc", "-O1", "-g", "-fsanitize=thread"), "clang": ("clang-19", "-O2")}


class Linked(OracleCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with np.load(DIGITS / "test.npz") as data:
            images = data["image"][:40]
        cls.want = []
        for name, options in FORMS.items():
            both = (f"-calib={DIGITS / 'calib.npz'}", "-no-sync", "-quiet", *options)
            qxc(DIGITS / "digits.onnx", "-emit=c", "-o", cls.scratch / f"{name}.c", *both)
            fake = cls.scratch / f"{name}.qir"
            rounding = [o for o in options if o.startswith("-requant")]
            qxc(DIGITS / "digits.onnx", "-o", fake, *[o for o in both if o not in rounding], "-form=true")
            cls.want.append(qxc_outputs(fake, {"image": images}, cls.scratch, *rounding)["logits"])
        cls.data = b"".join([images.astype("<f4").tobytes(), *(w.astype("<f4").tobytes() for w in cls.want)])
        (cls.scratch / "main.c").write_text(PROGRAM)

    def play(self, program, data):
        done = subprocess.run([program], input=data, capture_output=True, check=False, timeout=300)
        if b"unexpected memory mapping" in done.stderr:
            self.skipTest("ThreadSanitizer does not run here")
        self.assertEqual(b"", done.stderr)
        return done

    @for_each(*BUILDS)
    def test_two_models_in_threads(self, build):
        self.assertFalse(np.array_equal(*self.want), "two models that say the same prove little")
        program = self.scratch / f"program-{build}"
        compile_c(*BUILDS[build], "-std=c99", *WARNINGS, "-pthread", "-o", program,
                  *(self.scratch / f"{n}.c" for n in ("main", *FORMS)), "-lm")
        done = self.play(program, self.data)
        self.assertEqual((b"0 wrong\n", 0), (done.stdout, done.returncode))
        changed = bytearray(self.data)
        changed[-1] ^= 1
        done = self.play(program, bytes(changed))
        self.assertEqual((b"20 wrong\n", 1), (done.stdout, done.returncode))

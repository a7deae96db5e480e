/* Our own functions of floats against those of the C library on double, of every 9973rd float, and
 * at their edges. All of the floats were tried once; the bounds are of those. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/math/pick_f32.qk" /* chunks are plain C */
#include "kernels/math/scale2_f32.qk"
#include "kernels/math/reduce_exp_f32.qk"
#include "kernels/math/exp_f32.qk"
#include "kernels/math/expm1_f32.qk"
#include "kernels/math/erf_f32.qk"
#include "kernels/math/tanh_f32.qk"
#include "kernels/math/log_f32.qk"
#include "kernels/math/softplus_f32.qk"

static double softplus(double x) {
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

typedef struct Function {
    const char *name;
    float (*of)(float);
    double (*is)(double);
    double bound;  /* ulp */
    uint64_t hash; /* of the bits of all results but NaN */
} Function;

static const Function functions[] = {
    {"exp", qk_exp_f32, exp, 1.1, 0x6892915e026135abU},
    {"expm1", qk_expm1_f32, expm1, 1.5, 0xfd2435903419de19U},
    {"erf", qk_erf_f32, erf, 1.4, 0xc9b128449e932807U},
    {"tanh", qk_tanh_f32, tanh, 1.4, 0x093fde5ea5f86917U},
    {"log", qk_log_f32, log, 1.1, 0x3a66b6d1df755d84U},
    {"softplus", qk_softplus_f32, softplus, 2.2, 0x46b942ab9789f728U},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* How far `got` is from `want`, in units of the last place that a float has there; what is not a
 * number or not finite has to be that. */
static double ulps(float got, double want) {
    int e;
    if (isnan(want) || isinf((float)want))
        return isnan(want) ? !isnan(got) * 1e9 : (got != (float)want) * 1e9;
    if (!isfinite(got) || (want == 0 && (got != 0 || !signbit(got) != !signbit(want))))
        return 1e9;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, want == 0 || e < -125 ? -149 : e - 24);
}

static void check(const Function *f, float x) {
    float y = f->of(x);
    if (ulps(y, f->is((double)x)) > f->bound)
        fail_msg("%s(%a) is %a, not %a", f->name, (double)x, (double)y, f->is((double)x));
}

static void results_are_near(void **state) {
    (void)state;
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 9973)
            check(&functions[k], of_bits((uint32_t)i));
}

static void edges_are_right(void **state) {
    static const float at[] = {0.0f,     -0.0f,     1e-45f,      -1e-45f,       1.17549435e-38f,
                               88.7228f, 88.7229f,  -87.3365f,   -103.97f,      -104.0f,
                               0.95f,    -0.95f,    0.625f,      -0.625f,       0.35f,
                               1.0f,     -1.0f,     16777216.0f, 3.4028234e38f, -3.4028234e38f,
                               INFINITY, -INFINITY, NAN};
    (void)state;
    for (int k = 0; k < N_FUNCTIONS; k++)
        for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
            check(&functions[k], at[i]);
            check(&functions[k], nextafterf(at[i], INFINITY));
            check(&functions[k], nextafterf(at[i], -INFINITY));
        }
}

/* The bits do not depend on compilers, processors and C libraries (FNV-1a). */
static void bits_are_the_same_everywhere(void **state) {
    (void)state;
    for (int k = 0; k < N_FUNCTIONS; k++) {
        uint64_t hash = UINT64_C(14695981039346656037);
        for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 9973) {
            float y = functions[k].of(of_bits((uint32_t)i));
            uint32_t bits;
            memcpy(&bits, &y, sizeof bits);
            hash = (hash ^ (isnan(y) ? 0 : bits)) * UINT64_C(1099511628211);
        }
        if (hash != functions[k].hash)
            fail_msg("%s: 0x%016llx", functions[k].name, (unsigned long long)hash);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_near),
        cmocka_unit_test(edges_are_right),
        cmocka_unit_test(bits_are_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

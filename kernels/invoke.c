#include "kernels/kernel.h"

static bool has_wide_vectors(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

void kernel_invoke(const KernelDef *k, const void *params, void *const *args) {
    (k->invoke_wide && has_wide_vectors() ? k->invoke_wide : k->invoke)(params, args);
}

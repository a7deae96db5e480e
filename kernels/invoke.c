#include "kernels/kernel.h"

KernelVectors kernel_vectors(void) {
#if defined(__x86_64__)
    bool most = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512vnni");
    if (__builtin_cpu_supports("avx2"))
        return most ? KERNEL_AVX512 : KERNEL_AVX2;
#endif
    return KERNEL_ANY;
}

void kernel_invoke(const KernelDef *k, const void *params, void *const *args) {
    int vectors = kernel_vectors();
    while (!k->invoke[vectors])
        vectors--;
    k->invoke[vectors](params, args);
}

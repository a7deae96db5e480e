/* What a KernelDef says by name. See kernels/kernel.h. */
#include "kernels/kernel.h"

#include <string.h>

const KernelField *kernel_field(const KernelDef *k, const char *name) {
    for (size_t i = 0; i < k->n_fields; i++)
        if (strcmp(k->fields[i].name, name) == 0)
            return &k->fields[i];
    return NULL;
}

size_t kernel_field_count(const KernelField *f) {
    return f->count ? f->count : 1;
}

void *kernel_param(const KernelDef *k, const void *params, const char *name) {
    const KernelField *f = kernel_field(k, name);
    return f ? (char *)(uintptr_t)params + f->offset : NULL;
}

int32_t *kernel_strides(const KernelDef *k, const void *params, int arg) {
    const KernelField *dim = kernel_field(k, "dim");
    return (int32_t *)(void *)((char *)(uintptr_t)params + dim[1 + arg].offset);
}

int kernel_arg(const KernelDef *k, const char *name) {
    for (size_t i = 0; i < k->n_args; i++)
        if (strcmp(k->args[i].name, name) == 0)
            return (int)i;
    return -1;
}

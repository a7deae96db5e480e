#include "target/ort_kernels.h"

typedef struct Kernels {
    const char *domain, *op;
    int first, last;
    const char *types; /* combinations with a blank between, types with a comma */
} Kernels;

static const Kernels table[] = {
#define ORT_KERNELS(domain, op, first, last, types) {domain, op, first, last, types},
#include "target/ort_kernels.def"
#undef ORT_KERNELS
};
enum { N_KERNELS = sizeof table / sizeof table[0] };

int64_t ort_probed_opset(int64_t opset) {
    int64_t first = table[0].first, last = table[0].last;
    for (size_t i = 1; i < N_KERNELS; i++) {
        first = table[i].first < first ? table[i].first : first;
        last = table[i].last > last ? table[i].last : last;
    }
    return opset < first ? first : opset > last ? last : opset;
}

static bool is_combination(const char *at, const ElemType *types, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(elem_name(types[i]));
        char end = i + 1 < n ? ',' : ' ';
        if (strncmp(at, elem_name(types[i]), length) != 0 ||
            (at[length] != end && (end == ',' || at[length])))
            return false;
        at += length + (at[length] != 0);
    }
    return true;
}

static bool holds(const char *types, const ElemType *wanted, size_t n) {
    for (const char *at = types; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL)
        if (is_combination(at, wanted, n))
            return true;
    return false;
}

bool ort_has_kernel(const char *domain, const char *op, int64_t opset, const ElemType *types,
                    size_t n) {
    opset = ort_probed_opset(opset);
    for (size_t i = 0; i < N_KERNELS; i++)
        if (strcmp(table[i].domain, domain) == 0 && strcmp(table[i].op, op) == 0 &&
            table[i].first <= opset && opset <= table[i].last)
            return holds(table[i].types, types, n);
    return false;
}

const char *ort_refuses(const Node *n, const char *domain, const char *op, const ElemType *types,
                        size_t n_types) {
    const Module *m = n->graph->module;
    if (ort_has_kernel(domain, op, module_opset(m, STR("")), types, n_types))
        return NULL;
    Buf b = buf_new(m->arena);
    buf_fmt(&b, "onnxruntime has no kernel for %s on", op);
    for (size_t i = 0; i < n_types; i++)
        buf_fmt(&b, "%s %s", i ? "," : "", elem_name(types[i]));
    return buf_as_str(&b).s;
}

/* What a call says about itself: operator, operands and result, and how sums are rounded. */
#include "backend/c/writer.h"
#include "program/foreign.h"

#include <math.h>

/* The multipliers of a call: one in its params, or tables. */
typedef struct Multipliers {
    const int32_t *c, *k; /* c NULL: shifts alone */
    size_t count;
    int mul, shift; /* buffers of the tables, -1 without */
} Multipliers;

static const void *field(const Call *call, const char *name) {
    const KernelField *f = kernel_field(call->kernel, name);
    return f && f->kind == KF_I32 && !f->count ? kernel_param(call->kernel, call->params, name)
                                               : NULL;
}

static int table(const Program *p, const Call *call, const char *name) {
    int arg = kernel_arg(call->kernel, name);
    return arg >= 0 && call->args[arg] >= 0 ? program_root(p, call->args[arg]) : -1;
}

static bool find_multipliers(const CWriter *w, const Call *call, Multipliers *m) {
    const Program *p = w->program;
    *m = (Multipliers){.mul = table(p, call, "mul"), .shift = table(p, call, "shift")};
    if (m->mul >= 0 && m->shift >= 0) {
        m->k = p->buffers[m->shift].data;
        bool shifts_alone = w->shared[m->mul] == w->shared[m->shift];
        m->c = shifts_alone ? NULL : p->buffers[m->mul].data;
        m->count = p->buffers[m->shift].count;
        return m->k && m->count > 0;
    }
    m->c = field(call, "c");
    m->k = field(call, "k");
    m->count = 1;
    return m->c && m->k;
}

static bool all_equal(const Multipliers *m) {
    for (size_t i = 1; i < m->count; i++)
        if ((m->k[i] != m->k[0] || (m->c && m->c[i] != m->c[0])) && (!m->c || m->c[i]))
            return false; /* what is multiplied with 0 has no scale */
    return true;
}

/* The range of what the channels have. */
static void put_range(FILE *f, const Multipliers *m) {
    double low = INFINITY, high = -INFINITY;
    int32_t least = INT32_MAX, most = INT32_MIN;
    for (size_t i = 0; i < m->count; i++) {
        if (m->c && !m->c[i])
            continue;
        double v = ldexp(m->c ? m->c[i] : 1, m->k[i]);
        low = fmin(low, v);
        high = fmax(high, v);
        least = -m->k[i] < least ? -m->k[i] : least;
        most = -m->k[i] > most ? -m->k[i] : most;
    }
    fprintf(f, "%.6g to %.6g, n = %d to %d", low, high, (int)least, (int)most);
}

static void put_multipliers(CWriter *w, const Call *call, int indent) {
    Multipliers m;
    if (!find_multipliers(w, call, &m))
        return;
    fprintf(w->f, "\n%*s * sums are multiplied with M = %s, ", indent, "",
            m.c ? "2^-n * M0" : "2^-n");
    if (all_equal(&m)) {
        if (m.c)
            fprintf(w->f, "M0 = %ld, ", (long)m.c[0]);
        fprintf(w->f, "n = %d: M = %.6g", -(int)m.k[0], ldexp(m.c ? m.c[0] : 1, m.k[0]));
        return;
    }
    put_range(w->f, &m);
    fprintf(w->f, ";\n%*s * ", indent, "");
    if (m.c)
        fprintf(w->f, "M0 in " STR_FMT ", ", STR_ARG(w->consts[w->shared[m.mul]]));
    fprintf(w->f, "-n in " STR_FMT, STR_ARG(w->consts[w->shared[m.shift]]));
}

enum { MOST_OPERANDS = 8 }; /* named: each operand of a Concat may have a call of its own */

void c_put_layer(CWriter *w, const Call *call, int indent) {
    const Node *n = call->node;
    fputs("/* ", w->f);
    c_put_node(w->f, n);
    for (size_t i = 0; n && i < n->n_in && i < MOST_OPERANDS; i++)
        if (n->in[i]) {
            fputs(i ? ", " : " : ", w->f);
            c_put_type(w, w->f, n->in[i]->type);
        }
    if (n && n->n_in > MOST_OPERANDS)
        fprintf(w->f, ", ... %zu operands", n->n_in);
    if (n && n->n_out && n->out[0]) {
        fprintf(w->f, "\n%*s * -> ", indent, "");
        c_put_type(w, w->f, n->out[0]->type);
    }
    if (call->foreign) {
        fprintf(w->f, "\n%*s * %s of ", indent, "", call->foreign->entry->function);
        c_put_name(w->f, str_from(call->foreign->library));
        fprintf(w->f, " in place of %s", call->foreign->ours->kernel->name);
    } else {
        put_multipliers(w, call, indent);
    }
    fputs(" */\n", w->f);
}

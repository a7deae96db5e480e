/* See passes/quantize/mac_rows.h. */
#include "passes/quantize/mac_rows.h"
#include "exec/kept.h"
#include "passes/edit.h"

#include <math.h>

/* ---- which nodes, and their tables ---- */

/* Not those whose shapes depend on data: they are behind what cannot run. */
bool mac_rows_of(Node *n, Diags *d, MacRows *r) {
    if (!n->def || n->def->quant.kind != QUANT_MAC || !n->def->quant.mac.sums || !n->in[0] ||
        type_real_elem(n->in[0]->type) != ELEM_FLOAT || value_is_const(n->in[0]) ||
        !edit_float_const(n->in[n->def->quant.mac.weight]) || !type_is_static(n->in[0]->type))
        return false;
    *r = (MacRows){.op = op_ctx(n, d), .data = {.node = n}};
    if (!n->def->quant.mac.sums(&r->op, &r->sums) || r->sums.terms < 1 || r->sums.positions < 1)
        return false;
    r->data.groups = (size_t)r->sums.groups;
    r->data.terms = (size_t)r->sums.terms;
    return true;
}

size_t mac_rows_size(const MacRows *r, bool gram, bool apart) {
    size_t row = r->data.groups * r->data.terms, square = row * r->data.terms;
    size_t rows = 2 + (gram ? 1 + ROWS_BATCH : 0) + (gram && apart ? ROWS_BATCH : 0);
    return rows * row + (gram ? square : 0) + (gram && apart ? square : 0);
}

static double *table(double **tables, size_t numbers) {
    double *t = *tables;
    *tables += numbers;
    return t;
}

void mac_rows_begin(MacRows *r, Arena *a, double *tables, bool gram, bool apart) {
    size_t row = r->data.groups * r->data.terms, square = row * r->data.terms;
    r->rows = NEW_ARRAY(a, float, row);
    r->reals = apart ? NEW_ARRAY(a, float, row) : NULL;
    r->data.real = table(&tables, row);
    r->data.mean = table(&tables, row);
    if (gram) {
        r->data.gram = table(&tables, square);
        r->first = table(&tables, row);
        r->batch = table(&tables, ROWS_BATCH * row);
    }
    if (gram && apart) {
        r->data.cross = table(&tables, square);
        r->away = table(&tables, ROWS_BATCH * row);
    }
}

/* ---- one sum more ---- */

/* As `float ~ q` is rounded; parameters of activations are per tensor, others stay as they are. */
static void round_row(const Quant *q, float *row, size_t n) {
    if (!q || q->n_scale != 1)
        return;
    int64_t zp = quant_zp(q, 0), lo = quant_lo(q), hi = quant_hi(q);
    float scale = quant_scale(q, 0);
    if (elem_bits(q->storage) <= 16 && !quant_is_wide(q)) {
        row_round(row, n, scale, (float)(lo - zp), (float)(hi - zp));
        return;
    }
    for (size_t i = 0; i < n; i++)
        row[i] = (float)(quant_round(row[i], scale, zp, lo, hi) - zp) * scale;
}

/* The batch goes into the lower triangles, as the sum of x x^T, and into whole squares with what
 * the float model has more. */
static void end_batch(MacRows *r) {
    size_t k = r->data.terms;
    for (size_t g = 0; g < r->data.groups; g++)
        for (size_t i = 0; i < k; i++)
            for (size_t b = 0; b < r->in_batch; b++) {
                const double *x = r->batch + (g * ROWS_BATCH + b) * k;
                if (x[i] == 0)
                    continue;
                row_add_scaled(x, i + 1, x[i], r->data.gram + (g * k + i) * k);
                if (r->data.cross)
                    row_add_scaled(r->away + (g * ROWS_BATCH + b) * k, k, x[i],
                                   r->data.cross + (g * k + i) * k);
            }
    r->in_batch = 0;
}

static void add_to_gram(MacRows *r, size_t group) {
    size_t k = r->data.terms, at = (group * ROWS_BATCH + r->in_batch) * k;
    const float *row = r->rows + group * k;
    double *first = r->first + group * k, *x = r->batch + at;
    for (size_t i = 0; r->data.rows == 1 && i < k; i++)
        first[i] = (double)row[i];
    for (size_t i = 0; i < k; i++)
        x[i] = (double)row[i] - first[i];
    for (size_t i = 0; r->data.cross && i < k; i++)
        r->away[at + i] = (double)r->reals[group * k + i] - (double)row[i];
}

/* Sums up: divided by their number, they are means in the end. */
static void add_rows(MacRows *r, bool apart) {
    size_t n = r->data.groups * r->data.terms;
    r->data.rows += 1;
    row_add(apart ? r->reals : r->rows, n, r->data.real);
    round_row(edit_tilde(r->data.node->in[0]), r->rows, n);
    row_add(r->rows, n, r->data.mean);
    for (size_t g = 0; r->data.gram && g < r->data.groups; g++)
        add_to_gram(r, g);
    if (r->data.gram && ++r->in_batch == ROWS_BATCH)
        end_batch(r);
}

/* Whether the sums of all groups at a position are numbers; they are `rows` then. */
static bool take_rows(const MacRows *r, const float *x, int64_t position, float *rows) {
    r->data.node->def->quant.mac.terms(&r->op, &r->sums, x, position, rows);
    for (size_t i = 0; i < r->data.groups * r->data.terms; i++)
        if (!isfinite(rows[i]))
            return false;
    return true;
}

/* A sum over NaN or infinity says nothing: it is left out, as statistics leave such elements. */
void mac_rows_add(MacRows *r, const float *x, const float *real, int64_t most) {
    int64_t all = r->sums.positions, take = all < most ? all : most;
    for (int64_t i = 0; i < take; i++) {
        /* not at even distances: those meet the same columns of an image in every row */
        int64_t position = take < all ? (int64_t)spread_place(r->looked++, (size_t)all) : i;
        if (take_rows(r, x, position, r->rows) && (!real || take_rows(r, real, position, r->reals)))
            add_rows(r, real != NULL);
        else
            r->left_out++;
    }
}

void mac_rows_hold(MacRows *r, Arena *a, const float *x, const float *real, int64_t most,
                   size_t room) {
    size_t n = r->data.groups * r->data.terms;
    int64_t all = r->sums.positions, take = all < most ? all : most;
    if (!r->data.held) {
        r->data.held = NEW_ARRAY(a, float, room *n);
        r->data.held_real = NEW_ARRAY(a, float, room *n);
    }
    for (int64_t i = 0; i < take && r->data.n_held < room; i++) {
        int64_t position = take < all ? (int64_t)spread_place(r->looked++, (size_t)all) : i;
        float *now = r->data.held + r->data.n_held * n;
        if (!take_rows(r, x, position, now) ||
            !take_rows(r, real, position, r->data.held_real + r->data.n_held * n)) {
            r->left_out++;
            continue;
        }
        round_row(edit_tilde(r->data.node->in[0]), now, n);
        r->data.n_held++;
    }
}

/* Of sums around the first row, those around the mean. */
static void center(MacRows *r, size_t group) {
    size_t k = r->data.terms;
    const double *mean = r->data.mean + group * k, *real = r->data.real + group * k;
    double *away = r->batch + group * ROWS_BATCH * k;
    double *more = r->data.cross ? r->away + group * ROWS_BATCH * k : NULL;
    for (size_t i = 0; i < k; i++)
        away[i] = mean[i] - r->first[group * k + i];
    for (size_t i = 0; more && i < k; i++)
        more[i] = real[i] - mean[i];
    for (size_t i = 0; i < k; i++) {
        row_add_scaled(away, i + 1, -r->data.rows * away[i], r->data.gram + (group * k + i) * k);
        if (more)
            row_add_scaled(more, k, -r->data.rows * away[i], r->data.cross + (group * k + i) * k);
    }
}

void mac_rows_finish(MacRows *r) {
    for (size_t i = 0; i < r->data.groups * r->data.terms; i++) {
        r->data.real[i] /= r->data.rows;
        r->data.mean[i] /= r->data.rows;
    }
    if (!r->data.gram)
        return;
    end_batch(r);
    for (size_t g = 0; g < r->data.groups; g++)
        center(r, g);
}

void mac_rows_say_left_out(const PassContext *c, const char *pass, const Node *first, size_t sums,
                           size_t nodes) {
    if (first)
        diag_warning(c->d, first->loc,
                     "%s leaves out %zu sum%s of %zu node%s over NaN or infinite elements of the "
                     "calibration run",
                     pass, sums, plural(sums), nodes, plural(nodes));
}

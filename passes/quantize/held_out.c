/* See passes/quantize/held_out.h. */
#include "passes/quantize/held_out.h"
#include "support/parallel.h"
#include "support/rows.h"

typedef struct Held {
    const WeightMatrix *w;
    const MacData *data;
    const float *numbers;
    bool centered;
    double *own[PARALLEL_MOST], *by[PARALLEL_MOST]; /* [terms], of each worker */
    double *error;                                  /* by channel */
} Held;

static double dot(const double *w, const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += w[i] * (double)x[i];
    return sum;
}

static double channel_error(const Held *h, size_t channel, double *own, double *by) {
    const MacData *d = h->data;
    size_t k = h->w->terms, group = channel / h->w->per_group;
    double usual = 0, sum = 0;
    for (size_t t = 0; t < k; t++) {
        size_t at = weight_at(h->w, channel, t);
        own[t] = tensor_float(h->w->data, at);
        by[t] = (double)h->numbers[at];
        usual += by[t] * d->mean[group * k + t] - own[t] * d->real[group * k + t];
    }
    for (size_t i = 0; i < d->n_held; i++) {
        size_t row = (i * d->groups + group) * k;
        double e = dot(by, d->held + row, k) - dot(own, d->held_real + row, k);
        e -= h->centered ? usual : 0;
        sum += e * e;
    }
    return sum;
}

static void look(void *ctx, size_t from, size_t to, int worker) {
    const Held *h = ctx;
    for (size_t c = from; c < to; c++)
        h->error[c] = channel_error(h, c, h->own[worker], h->by[worker]);
}

double held_out_error(const WeightMatrix *w, const MacData *data, const float *numbers,
                      bool centered, Arena *a) {
    Held h = {w, data, numbers, centered, .error = NEW_ARRAY(a, double, w->channels)};
    size_t part = 1 + PARALLEL_PART / (w->terms * (2 * data->n_held + 1));
    for (int i = 0; i < parallel_workers(w->channels, part); i++) {
        h.own[i] = NEW_ARRAY(a, double, w->terms);
        h.by[i] = NEW_ARRAY(a, double, w->terms);
    }
    parallel_for(w->channels, part, look, &h);
    double sum = 0;
    for (size_t c = 0; c < w->channels; c++)
        sum += h.error[c];
    return sum;
}

static void join(double *mean, const float *held, const MacData *d) {
    size_t n = d->groups * d->terms;
    for (size_t i = 0; i < n; i++)
        mean[i] *= d->rows;
    for (size_t i = 0; i < d->n_held; i++)
        row_add(held + i * n, n, mean);
    for (size_t i = 0; i < n; i++)
        mean[i] /= d->rows + (double)d->n_held;
}

void held_out_join(const MacData *data) {
    join(data->mean, data->held, data);
    join(data->real, data->held_real, data);
}

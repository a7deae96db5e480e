/* See exec/schedule.h. Goes from sets of k steps taken to sets of k + 1: of all the ways to a set
 * only the one with the smallest peak matters, as what is alive after it is the same. */
#include "exec/schedule.h"

#include <stdlib.h>
#include <string.h>

enum { BEAM = 256, WORDS = SCHEDULE_MAX / 64, SLOTS = 1 << 16 };

/* ---- sets ---- */

void step_set_add(StepSet *s, int step) {
    s->word[step / 64] |= 1ull << step % 64;
}

void step_set_remove(StepSet *s, int step) {
    s->word[step / 64] &= ~(1ull << step % 64);
}

void step_set_join(StepSet *s, const StepSet *more) {
    for (int i = 0; i < WORDS; i++)
        s->word[i] |= more->word[i];
}

static bool has(const StepSet *s, int step) {
    return s->word[step / 64] >> step % 64 & 1;
}

static bool holds_all(const StepSet *s, const StepSet *part) {
    for (int i = 0; i < WORDS; i++)
        if (part->word[i] & ~s->word[i])
            return false;
    return true;
}

static bool holds_any(const StepSet *s, const StepSet *part) {
    for (int i = 0; i < WORDS; i++)
        if (part->word[i] & s->word[i])
            return true;
    return false;
}

static int compare(const StepSet *a, const StepSet *b) {
    for (int i = WORDS - 1; i >= 0; i--)
        if (a->word[i] != b->word[i])
            return a->word[i] < b->word[i] ? -1 : 1;
    return 0;
}

/* ---- one step ---- */

typedef struct State {
    StepSet done;
    size_t live, peak;
    uint32_t from; /* the state before it, an index into the level before */
    int step;
} State;

static bool begins(const ScheduleItem *item, const StepSet *done) {
    return !item->before && !holds_any(done, &item->users);
}

static bool ends(const ScheduleItem *item, const StepSet *done) {
    return !item->after && holds_all(done, &item->users);
}

static State take(const Schedule *s, const State *from, int step) {
    const ScheduleStep *t = &s->steps[step];
    State to = *from;
    size_t saved = 0, gone = 0;
    to.step = step;
    step_set_add(&to.done, step);
    for (size_t i = 0; i < t->n_items; i++) {
        const ScheduleItem *item = &s->items[t->items[i]];
        to.live += begins(item, &from->done) ? item->bytes : 0;
        gone += ends(item, &to.done) ? item->bytes : 0;
    }
    for (size_t i = 0; i < t->n_savings; i++) {
        const ScheduleSaving *v = &t->savings[i];
        if (ends(&s->items[v->under], &to.done) && begins(&s->items[v->over], &from->done) &&
            v->bytes > saved)
            saved = v->bytes;
    }
    size_t now = to.live + t->own - saved;
    to.peak = now > to.peak ? now : to.peak;
    to.live -= gone;
    return to;
}

static State start(const Schedule *s) {
    State state = {0};
    for (size_t i = 0; i < s->n_items; i++)
        state.live += s->items[i].before ? s->items[i].bytes : 0;
    return state;
}

size_t schedule_peak(const Schedule *s, const int *order) {
    State state = start(s);
    for (int i = 0; i < s->n_steps; i++)
        state = take(s, &state, order ? order[i] : i);
    return state.peak;
}

size_t schedule_floor(const Schedule *s) {
    size_t floor = 0;
    for (int i = 0; i < s->n_steps; i++) {
        const ScheduleStep *t = &s->steps[i];
        size_t sum = t->own, saved = 0;
        for (size_t k = 0; k < t->n_items; k++)
            sum += s->items[t->items[k]].bytes;
        for (size_t k = 0; k < t->n_savings; k++)
            saved = t->savings[k].bytes > saved ? t->savings[k].bytes : saved;
        floor = sum - saved > floor ? sum - saved : floor;
    }
    return floor;
}

/* ---- the search ---- */

struct Scheduler {
    State *found; /* of the next level: as many as a level can lead to */
    size_t n;
    uint64_t *slots; /* by hash of the set: 1 + index into found, above it the level's number */
    uint64_t number;
    State *level[SCHEDULE_MAX + 1];
    size_t count[SCHEDULE_MAX + 1];
};

Scheduler *scheduler_new(Arena *a) {
    Scheduler *r = NEW(a, Scheduler);
    r->found = NEW_ARRAY(a, State, BEAM * SCHEDULE_MAX);
    r->slots = NEW_ARRAY(a, uint64_t, SLOTS);
    for (int i = 0; i <= SCHEDULE_MAX; i++)
        r->level[i] = NEW_ARRAY(a, State, BEAM);
    return r;
}

static size_t slot_of(const StepSet *s) {
    uint64_t h = 0;
    for (int i = 0; i < WORDS; i++)
        h = (h ^ s->word[i]) * 0x9e3779b97f4a7c15u;
    return (h >> 40) % SLOTS;
}

static void enter(Scheduler *r, const State *state) {
    size_t i = slot_of(&state->done);
    for (; r->slots[i] >> 32 == r->number; i = (i + 1) % SLOTS) {
        State *same = &r->found[(uint32_t)r->slots[i] - 1];
        if (compare(&same->done, &state->done))
            continue;
        if (state->peak < same->peak)
            *same = *state;
        return;
    }
    r->found[r->n] = *state;
    r->slots[i] = r->number << 32 | ++r->n;
}

static int by_peak(const void *x, const void *y) {
    const State *a = x, *b = y;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    if (a->live != b->live)
        return a->live < b->live ? -1 : 1;
    return compare(&a->done, &b->done);
}

/* From the states after k steps to those after one more. */
static void advance(Scheduler *r, const Schedule *s, int k, size_t limit) {
    r->number++;
    r->n = 0;
    for (size_t i = 0; i < r->count[k]; i++)
        for (int step = 0; step < s->n_steps; step++) {
            const State *from = &r->level[k][i];
            if (has(&from->done, step) || !holds_all(&from->done, &s->steps[step].needs))
                continue;
            State next = take(s, from, step);
            next.from = (uint32_t)i;
            if (next.peak < limit)
                enter(r, &next);
        }
    if (r->n > BEAM)
        qsort(r->found, r->n, sizeof *r->found, by_peak);
    r->count[k + 1] = r->n < BEAM ? r->n : BEAM;
    memcpy(r->level[k + 1], r->found, r->count[k + 1] * sizeof *r->found);
}

bool schedule_search(Scheduler *r, const Schedule *s, size_t limit, int *order) {
    r->level[0][0] = start(s);
    r->count[0] = 1;
    for (int k = 0; k < s->n_steps; k++) {
        advance(r, s, k, limit);
        if (r->count[k + 1] == 0)
            return false;
    }
    uint32_t at = 0;
    for (int k = s->n_steps; k > 0; k--) {
        order[k - 1] = r->level[k][at].step;
        at = r->level[k][at].from;
    }
    return true;
}

/* See instance.h. */
#include "tools/kernelgen/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(Instances *all, const Instance *in) {
    all->list = check(realloc(all->list, (size_t)(all->n + 1) * sizeof *all->list));
    all->list[all->n++] = *in;
}

static void add_twin(Instances *all, const Instance *of) {
    Instance in = *of;
    size_t n = strlen(in.name);
    if (!ends(in.name, n, "_f32"))
        fail(in.t->path, 1, "only what is called NAME_f32 has a form in double");
    memcpy(in.name + n - 2, "64", 2);
    for (int i = 0; i < in.n_uses; i++)
        in.uses[i] = widened(in.uses[i]);
    in.text = (Text){0};
    expand_body(&in);
    in.text.p = widened(in.text.p);
    add(all, &in);
}

/* The signed type derived from types of at most `bits`. */
static const Type *derive(char how, int bits) {
    if (how == 'w')
        return find_type(bits == 8 ? "s16" : bits == 16 ? "s32" : "s64");
    if (how == 'a')
        return find_type(bits == 8 ? "s32" : "s64");
    return find_type(bits == 8 ? "s16" : "s32");
}

static void finish_instance(Instances *all, const Template *t, const Type *const *bind) {
    Instance in = {.t = t};
    memcpy(in.bind, bind, sizeof in.bind);
    int at = snprintf(in.name, sizeof in.name, "%s%s", t->chunk ? "" : "qk_", t->name);
    for (int i = 0; i < t->n_letters; i++) {
        const Letter *l = &t->letters[i];
        if (!l->derived) {
            const Type *ty = bind[(unsigned char)l->letter];
            at += snprintf(in.name + at, sizeof in.name - (size_t)at, "%s%s", ty->bits ? "_" : "",
                           ty->bits ? ty->id : ty->ctype);
            continue;
        }
        int bits = 0;
        for (const char *c = l->from; *c; c++)
            if (in.bind[(unsigned char)*c]->bits > bits)
                bits = in.bind[(unsigned char)*c]->bits;
        in.bind[(unsigned char)l->letter] = derive(l->derived, bits);
    }
    for (int i = 0; i < t->n_skips; i++)
        if (holds(&in, t->skips[i].line, t->skips[i].text))
            return;
    for (int i = 0; i < t->n_uses; i++) {
        Text s = {0};
        if (t->use_if[i] && !holds(&in, t->uses[i].line, t->use_if[i]))
            continue;
        substitute(&in, t->uses[i].line, t->uses[i].text, &s);
        in.uses[in.n_uses++] = s.p;
    }
    expand_body(&in);
    add(all, &in);
    size_t n = strlen(in.name);
    if (t->twin && (t->n_letters == 0 || ends(in.name, n, "_f32")))
        add_twin(all, &in);
}

static void bind_letters(Instances *all, const Template *t, int letter, const Type **bind) {
    if (letter == t->n_letters) {
        finish_instance(all, t, bind);
        return;
    }
    const Letter *l = &t->letters[letter];
    if (l->derived) {
        bind_letters(all, t, letter + 1, bind);
        return;
    }
    for (int i = 0; i < l->n; i++) {
        bind[(unsigned char)l->letter] = l->list[i];
        bind_letters(all, t, letter + 1, bind);
    }
}

void instantiate(Instances *all, const Template *t) {
    const Type *bind[256] = {0};
    bind_letters(all, t, 0, bind);
}

static const Instance *find_chunk(const Instances *all, const Instance *user, const char *name) {
    for (int i = 0; i < all->n; i++)
        if (all->list[i].t->chunk && !strcmp(all->list[i].name, name))
            return &all->list[i];
    fail(user->t->path, user->t->uses[0].line, "%s uses chunk '%s', which does not exist",
         user->name, name);
}

void closure(const Instances *all, const Instance *in, const Instance **list, int *n) {
    for (int i = 0; i < in->n_uses; i++) {
        const Instance *c = find_chunk(all, in, in->uses[i]);
        closure(all, c, list, n);
        bool seen = false;
        for (int j = 0; j < *n; j++)
            seen |= list[j] == c;
        if (!seen && *n == MAX_WORDS)
            fail(in->t->path, 1, "too many chunks");
        if (!seen)
            list[(*n)++] = c;
    }
}

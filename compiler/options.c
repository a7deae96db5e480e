#include "compiler/options.h"
#include "program/split.h"
#include "support/file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const OptionDef defs[] = {
#define OPT(f, name, kind, origin, decides, of, use, excludes, arg, help)                          \
    {name,    OPTION_##kind, ORIGIN_##origin, DECIDES_##decides,                                   \
     OF_##of, USE_##use,     excludes,        offsetof(Options, f),                                \
     arg,     help},
#include "compiler/options.def"
};
enum { N_DEFS = sizeof defs / sizeof defs[0] };

size_t option_count(void) {
    return N_DEFS;
}

const OptionDef *option_at(size_t i) {
    return &defs[i];
}

static const Command commands[] = {
#define COMMAND(id, function, ...) {COMMAND_##id, #id, __VA_ARGS__},
#include "compiler/commands.def"
};

const Command *command_at(size_t i) {
    return &commands[i];
}

const Command *command_find(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static const Packaged packaged[] = {
#define PACKAGED(...) {__VA_ARGS__},
#include "compiler/commands.def"
};
enum { N_PACKAGED = sizeof packaged / sizeof *packaged };

size_t packaged_count(void) {
    return N_PACKAGED;
}

const Packaged *packaged_at(size_t i) {
    return &packaged[i];
}

const Packaged *packaged_find(const char *name) {
    for (size_t i = 0; i < N_PACKAGED; i++)
        if (strcmp(name, packaged[i].name) == 0)
            return &packaged[i];
    return NULL;
}

static void *field(Options *o, const OptionDef *def) {
    return (char *)o + def->offset;
}

const OptionDef *option_find(Str name) {
    if (str_is(name, "h"))
        name = STR("help");
    for (size_t i = 0; i < N_DEFS; i++)
        if (str_is(name, defs[i].name))
            return &defs[i];
    return NULL;
}

bool option_may_take(const OptionDef *def) {
    return def->kind == OPTION_MAYBE || def->kind == OPTION_MAYBE_TEXT;
}

const char *option_title(Arena *a, const OptionDef *def) {
    bool maybe = option_may_take(def);
    const char *between = def->kind == OPTION_FLAG ? ""
                          : strlen(def->name) == 1 ? " "
                          : maybe                  ? "[="
                                                   : "=";
    return arena_strf(a, "-%s%s%s%s", def->name, between, def->arg, maybe ? "]" : "").s;
}

bool option_given(const Options *o, const OptionDef *def) {
    const void *at = (const char *)o + def->offset;
    switch (def->kind) {
    case OPTION_FLAG: return *(const bool *)at;
    case OPTION_TEXT:
    case OPTION_ONE_OF:
    case OPTION_MAYBE_TEXT: return *(const char *const *)at != NULL;
    case OPTION_INT:
    case OPTION_MAYBE: return *(const int64_t *)at >= 0;
    case OPTION_LIST: break;
    }
    return ((const TextList *)at)->n > 0;
}

static bool unknown(Diags *d, Str name) {
    const char *names[N_DEFS];
    for (size_t i = 0; i < N_DEFS; i++)
        names[i] = defs[i].name;
    diag_error(d, LOC_NONE, "unknown option -%s", diag_name(d, name));
    diag_did_you_mean(d, LOC_NONE, name, names, N_DEFS);
    return false;
}

typedef struct Bound {
    size_t offset; /* of the field */
    int64_t least, most;
} Bound;

static const Bound *bound_of(const OptionDef *def) {
    enum { MEMORY_MOST_MIB = INT32_MAX }; /* some 2 PiB */
    static const Bound bounds[] = {
#define BOUND(f, least, most) {offsetof(Options, f), least, most},
#include "compiler/options.def"
    };
    static const Bound any = {0, 0, INT64_MAX};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].offset == def->offset)
            return &bounds[i];
    return &any;
}

static bool set_int(const OptionDef *def, int64_t *to, const char *text, Diags *d) {
    const Bound *bound = bound_of(def);
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    bool number = end != text && !*end;
    if (number && !errno && v >= bound->least && v <= bound->most) {
        *to = v;
        return true;
    }
    const char *name = diag_name(d, str_from(text));
    if (bound->most == INT64_MAX && !(number && v >= bound->least))
        return diag_error(d, LOC_NONE, "-%s wants a number of %lld or more, not '%s'", def->name,
                          (long long)bound->least, name);
    return diag_error(d, LOC_NONE, "-%s wants a number from %lld to %lld, not '%s'", def->name,
                      (long long)bound->least, (long long)bound->most, name);
}

/* Is the value one of the words of `arg`, which are parted by |? */
static bool is_one_of(const OptionDef *def, const char *value, Arena *a, Diags *d) {
    enum { MOST = 8 };
    char *words = arena_copy(a, def->arg, strlen(def->arg) + 1);
    const char *each[MOST];
    size_t n = 0;
    for (char *rest, *word = strtok_r(words, "|", &rest); word && n < MOST;
         word = strtok_r(NULL, "|", &rest)) {
        if (strcmp(word, value) == 0)
            return true;
        each[n++] = word;
    }
    Buf all = buf_new(a);
    for (size_t i = 0; i < n; i++)
        buf_fmt(&all, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", each[i]);
    diag_error(d, LOC_NONE, "-%s wants %s, not '%s'", def->name, buf_as_str(&all).s,
               diag_name(d, str_from(value)));
    diag_did_you_mean(d, LOC_NONE, str_from(value), each, n);
    return false;
}

/* Of options that take "GLOB,...". A name of a value may have any commas. */
static bool has_all_entries(const OptionDef *def, const char *value, Diags *d) {
    Str entry;
    if (strcmp(def->arg, "GLOB,...") != 0)
        return true;
    for (const char *at = value; str_next_item(&at, &entry);)
        if (!entry.n)
            return diag_error(d, LOC_NONE, "-%s: an entry of the list '%s' is empty", def->name,
                              diag_name(d, str_from(value)));
    return true;
}

static bool set(Options *o, const OptionDef *def, const char *value, Arena *a, Diags *d) {
    void *to = field(o, def);
    if (def->kind == OPTION_FLAG) {
        if (value)
            return diag_error(d, LOC_NONE, "-%s takes no value", def->name);
        *(bool *)to = true;
        return true;
    }
    if (def->kind == OPTION_MAYBE && !value) {
        *(int64_t *)to = 0;
        return true;
    }
    if (def->kind == OPTION_MAYBE_TEXT && (!value || *value)) {
        *(const char **)to = value ? value : "";
        return true;
    }
    bool none = value && !*value && def->kind == OPTION_LIST; /* -passes= says that there is none */
    if (!value || none || def->kind == OPTION_MAYBE_TEXT)
        return diag_error(d, LOC_NONE, "-%s wants a value: -%s=%s", def->name, def->name, def->arg);
    if (def->kind == OPTION_ONE_OF && !is_one_of(def, value, a, d))
        return false;
    if (def->kind == OPTION_TEXT || def->kind == OPTION_ONE_OF) {
        const char *before = *(const char **)to;
        if (before && strcmp(before, value) != 0)
            ARENA_PUSH(a, o->twice.items, o->twice.n, o->twice.cap, def->name);
        *(const char **)to = value;
    } else if (def->kind == OPTION_LIST) {
        TextList *l = to;
        if (!has_all_entries(def, value, d))
            return false;
        ARENA_PUSH(a, l->items, l->n, l->cap, value);
    } else {
        return set_int(def, to, value, d);
    }
    return true;
}

/* One word that starts with '-'; `next` is the word after it. Returns how many words it took. */
static int parse_option(Options *o, const char *word, const char *next, Arena *a, Diags *d) {
    const char *name = word + 1 + (word[1] == '-');
    const char *eq = strchr(name, '=');
    Str key = {name, eq ? (size_t)(eq - name) : strlen(name)};
    const OptionDef *def = option_find(key);
    if (!def) {
        unknown(d, key);
        return 1;
    }
    bool a_value = next && (next[0] != '-' || !next[1]);
    bool takes_next = !eq && a_value && !option_may_take(def) && def->kind != OPTION_FLAG;
    set(o, def, eq ? eq + 1 : takes_next ? next : NULL, a, d);
    return takes_next ? 2 : 1;
}

bool options_take(Options *o, const char *word, Arena *a, Diags *d) {
    int before = diags_errors(d);
    parse_option(o, word, NULL, a, d);
    return diags_errors(d) == before;
}

bool options_next(const char **words, Str *word, const OptionDef **def) {
    *word = (Str){*words, strcspn(*words, " ")};
    *words += word->n + ((*words)[word->n] == ' ');
    if (word->n)
        *def = option_find((Str){word->s + 1, strcspn(word->s, "= ") - 1});
    return word->n;
}

/* The first word that is no option may be a command. False where nothing behind it is for this
 * program. */
static bool take_word(Options *o, const char *word, Arena *a, Diags *d) {
    if (o->command->id == COMMAND_compile && !o->inputs.n && packaged_find(word))
        return diag_error(d, LOC_NONE,
                          "%s is a command of the Python package, where it stands before all "
                          "options: pip install qxc",
                          word);
    const Command *c = o->command->id == COMMAND_compile ? command_find(word) : NULL;
    if (c && !o->inputs.n)
        o->command = c;
    else if (c) /* compiling takes one file */
        diag_error(d, LOC_NONE, "a command stands before the files: qxc %s %s", word,
                   diag_name(d, str_from(o->inputs.items[0])));
    else
        ARENA_PUSH(a, o->inputs.items, o->inputs.n, o->inputs.cap, word);
    return true;
}

/* `qxc help -calib` asks about an option; how messages look, the last group, is help's own. */
static bool is_topic(const char *word) {
    const char *name = word + 1 + (word[0] == '-' && word[1] == '-');
    const OptionDef *def = word[0] == '-' && *name ? option_find(str_from(name)) : NULL;
    return def && (def->kind != OPTION_FLAG || def->offset < offsetof(Options, json));
}

bool options_parse(Options *o, Arena *a, int argc, char **argv, Diags *d) {
    int before = diags_errors(d), i = 1;
    memset(o, 0, sizeof *o);
    o->command = command_at(COMMAND_compile);
    for (size_t k = 0; k < N_DEFS; k++)
        if (defs[k].kind == OPTION_INT || defs[k].kind == OPTION_MAYBE)
            *(int64_t *)field(o, &defs[k]) = -1;
    bool only_files = false;
    while (i < argc) {
        if (!only_files && strcmp(argv[i], "--") == 0) {
            only_files = true;
            i++;
        } else if (!only_files && o->command->id == COMMAND_help && is_topic(argv[i])) {
            ARENA_PUSH(a, o->inputs.items, o->inputs.n, o->inputs.cap, argv[i++]);
        } else if (!only_files && argv[i][0] == '-' && argv[i][1]) {
            i += parse_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, a, d);
        } else if (only_files) {
            o->only_files |= !o->inputs.n;
            ARENA_PUSH(a, o->inputs.items, o->inputs.n, o->inputs.cap, argv[i++]);
        } else if (!take_word(o, argv[i++], a, d)) {
            return false;
        }
    }
    return diags_errors(d) == before;
}

static void suggest_command(Diags *d, const char *word) {
    const char *names[N_COMMANDS + N_PACKAGED];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    for (size_t i = 0; i < N_PACKAGED; i++)
        names[N_COMMANDS + i] = packaged[i].name;
    diag_did_you_mean(d, LOC_NONE, str_from(word), names, N_COMMANDS + N_PACKAGED);
}

bool options_inputs(const Options *o, size_t want, Diags *d) {
    const TextList *in = &o->inputs;
    if (in->n == want)
        return true;
    if (in->n < want)
        return diag_error(d, LOC_NONE,
                          in->n == 0 ? "no input file: see qxc help"
                                     : "a second input file is missing: see qxc help");
    return diag_error(d, LOC_NONE, "too many input files: see qxc help");
}

bool options_command_is_known(const Options *o, Diags *d) {
    const TextList *in = &o->inputs;
    if (o->help || o->version || o->command->id != COMMAND_compile || !in->n ||
        access(in->items[0], F_OK) == 0)
        return true;
    const char *word = in->items[0];
    bool a_path = o->only_files || strcmp(word, "-") == 0 || strpbrk(word, "./");
    if (in->n == 1 && a_path)
        return true; /* reading it says more */
    diag_error(d, LOC_NONE, "'%s' is no file and no command: see qxc help",
               diag_name(d, str_from(word)));
    suggest_command(d, word);
    return false;
}

bool options_have_data(const Options *o) {
    return o->calib.n || o->calib_random >= 0;
}

/* ---- those that have a part in the result, in a comment or a command ---- */

static void put_origin(const OptionDef *def, const char *value, Buf *out) {
    enum { COLUMNS = 92 };
    size_t line = out->n, before = out->n;
    while (line && out->p[line - 1] != '\n')
        line--;
    buf_fmt(out, " -%s", def->name);
    if (value && *value) {
        buf_byte(out, '=');
        buf_escaped(out, str_from(def->origin == ORIGIN_FILE ? path_base(value) : value));
    }
    if (out->n - line > COLUMNS && before > line)
        out->p[before] = '\n';
}

/* The same as a word for a shell, with whole paths. */
static void put_word(const OptionDef *def, const char *value, Buf *out) {
    Buf word = buf_new(out->arena);
    buf_fmt(&word, "-%s", def->name);
    if (value && *value)
        buf_fmt(&word, "=%s", value);
    buf_byte(out, ' ');
    buf_shell(out, buf_as_str(&word));
}

typedef void PutOption(const OptionDef *def, const char *value, Buf *out);

static void put_given(const OptionDef *def, const Options *o, PutOption *put, Buf *out) {
    const void *at = (const char *)o + def->offset;
    char number[24];
    if (def->kind == OPTION_LIST) {
        for (size_t i = 0; i < ((const TextList *)at)->n; i++)
            put(def, ((const TextList *)at)->items[i], out);
    } else if (def->kind == OPTION_INT || def->kind == OPTION_MAYBE) {
        int64_t v = *(const int64_t *)at;
        snprintf(number, sizeof number, "%lld", (long long)v);
        put(def, def->kind == OPTION_MAYBE && v == 0 ? NULL : number, out);
    } else {
        put(def, def->kind == OPTION_FLAG ? NULL : *(const char *const *)at, out);
    }
}

void options_origin(const Options *o, Buf *out) {
    for (size_t i = 0; i < N_DEFS; i++)
        if (defs[i].origin != ORIGIN_NONE && option_given(o, &defs[i]))
            put_given(&defs[i], o, put_origin, out);
}

void options_repeat(const Options *o, OptionWanted *wanted, const void *ctx, Buf *out) {
    for (size_t i = 0; i < N_DEFS; i++)
        if (defs[i].origin != ORIGIN_NONE && option_given(o, &defs[i]) && wanted(&defs[i], ctx))
            put_given(&defs[i], o, put_word, out);
}

/* qxc help, -help, -h: the commands, what one of them takes, a group of options. All of it is made
 * from commands.def and options.def. */
#include "compiler/completion.h"
#include "compiler/session.h"
#include "compiler/without_effect.h"

typedef struct Group {
    const char *name, *title;
} Group;

static const Group groups[] = {
#define TITLE(name, title) {#name, title},
#include "compiler/options.def"
};
enum { N_GROUPS = sizeof groups / sizeof *groups };

/* Rows stand in the order of their fields. */
static const char *group_of(const OptionDef *def) {
    static const struct {
        const char *name;
        size_t from;
    } starts[] = {
#define GROUP(name, field) {#name, offsetof(Options, field)},
#include "compiler/options.def"
    };
    const char *name = "";
    for (size_t i = 0; i < sizeof starts / sizeof *starts && starts[i].from <= def->offset; i++)
        name = starts[i].name;
    return name;
}

static void print_option(Arena *a, const OptionDef *def) {
    printf("  %-26s %s\n", option_title(a, def), def->help);
}

static void print_usage(const Command *c) {
    printf("  qxc %-40s %s\n", c->usage, c->about);
}

static void print_packaged(const Packaged *p) {
    printf("  qxc %-40s %s (Python package)\n", p->usage, p->about);
}

/* Those of the program, and those that the Python package has besides. */
static void print_commands(void) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        print_usage(command_at(i));
    for (size_t i = 0; i < packaged_count(); i++)
        print_packaged(packaged_at(i));
}

/* Whether a command takes options of the group that say nothing of what they go with. */
static bool takes_group(const Command *c, const char *group) {
    size_t n;
    if (!*c->groups)
        return true;
    for (const char *p = c->groups; *p; p += n + strspn(p + n, " "))
        if (n = strcspn(p, " "), str_is((Str){p, n}, group))
            return true;
    return false;
}

static bool goes_with(const OptionDef *def, const Options *o) {
    return !o || (option_goes_with(def, o) &&
                  (def->use != USE_ANY || takes_group(o->command, group_of(def))));
}

/* Those of a group that go with what `o` says; NULL: all of them. */
static void print_group(Arena *a, const Group *g, const Options *o) {
    bool begun = false;
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *def = option_at(i);
        if (strcmp(group_of(def), g->name) != 0 || !goes_with(def, o))
            continue;
        if (!begun)
            printf("\n%s: %s\n", g->name, g->title);
        begun = true;
        print_option(a, def);
    }
}

static void print_overview(void) {
    puts("usage:");
    print_commands();
    puts("\nto begin with:\n"
         "  qxc info model.onnx                                        what it is\n"
         "  qxc model.onnx -calib=data.npz -emit=qdq -o int8.onnx      for a runtime\n"
         "  qxc model.onnx -calib=data.npz -emit=c -o model.c          as C\n"
         "  qxc model.onnx -calib=data.npz -o model.qir                as a text to read and edit\n"
         "\noptions, in groups (an option takes its value as -calib=FILE or -calib FILE):");
    for (size_t i = 0; i < N_GROUPS; i++)
        printf("  qxc help %-12s %s\n", groups[i].name, groups[i].title);
    puts("  qxc help COMMAND      what a command takes, with all options that go with it\n"
         "  qxc help OPTION       an option\n"
         "  qxc help all          everything; man, bash, zsh, fish: for these");
}

static void print_all(Arena *a) {
    print_commands();
    for (size_t i = 0; i < N_GROUPS; i++)
        print_group(a, &groups[i], NULL);
}

static void print_command(Arena *a, const Options *o, const Command *c) {
    Options with = *o;
    with.command = c;
    puts("usage:");
    print_usage(c);
    for (size_t i = 0; i < N_GROUPS; i++)
        print_group(a, &groups[i], &with);
}

static ExitCode unknown(Arena *a, const char *topic, Diags *d) {
    size_t n = N_COMMANDS + N_GROUPS + option_count() + packaged_count();
    const char **names = NEW_ARRAY(a, const char *, n);
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = command_at(i)->name;
    for (size_t i = 0; i < N_GROUPS; i++)
        names[N_COMMANDS + i] = groups[i].name;
    for (size_t i = 0; i < option_count(); i++)
        names[N_COMMANDS + N_GROUPS + i] = option_at(i)->name;
    for (size_t i = 0; i < packaged_count(); i++)
        names[n - 1 - i] = packaged_at(i)->name;
    diag_error(d, LOC_NONE, "there is no help about '%s': qxc help shows what there is",
               diag_name(d, str_from(topic)));
    diag_did_you_mean(d, LOC_NONE, str_from(topic), names, n);
    return EXIT_USAGE;
}

static const Group *find_group(const char *name) {
    for (size_t i = 0; i < N_GROUPS; i++)
        if (strcmp(name, groups[i].name) == 0)
            return &groups[i];
    return NULL;
}

/* An option may have its dash, or two. */
static const char *without_dash(const char *word) {
    size_t n = strspn(word, "-");
    return n <= 2 && word[n] ? word + n : word;
}

static ExitCode print_topic(Arena *a, const Options *o, const char *topic, Diags *d) {
    const Group *g = find_group(topic);
    const Command *c = command_find(topic);
    const Packaged *p = packaged_find(topic);
    const OptionDef *def = option_find(str_from(topic));
    if (completion_print(a, topic))
        return EXIT_DONE;
    if (g)
        print_group(a, g, NULL);
    else if (c)
        print_command(a, o, c);
    else if (p)
        print_packaged(p);
    else if (strcmp(topic, "all") == 0)
        print_all(a);
    else if (def)
        print_option(a, def);
    else
        return unknown(a, topic, d);
    return EXIT_DONE;
}

/* `qxc help`, `qxc -help` and `qxc run -help`. */
ExitCode cmd_help(Session *s) {
    const Command *c = s->o.command;
    bool of_command = c->id != COMMAND_help && c->id != COMMAND_compile;
    if (of_command)
        print_command(s->arena, &s->o, c);
    else if (c->id == COMMAND_help && s->o.inputs.n)
        return print_topic(s->arena, &s->o, without_dash(s->o.inputs.items[0]), s->d);
    else
        print_overview();
    return EXIT_DONE;
}

/* qxc help man, bash, zsh, fish: what `make install` puts down for these, made from commands.def
 * and options.def. */
#include "compiler/completion.h"

#include "compiler/options.h"

static bool takes_value(const OptionDef *def) {
    return def->kind != OPTION_FLAG;
}

/* `name` or `name=`, as a person would go on typing. */
static const char *equals(const OptionDef *def) {
    return takes_value(def) && !option_may_take(def) ? "=" : "";
}

/* The words of ONE_OF, parted by `between`; nothing for others. */
static void put_words(const OptionDef *def, char between) {
    for (const char *p = def->kind == OPTION_ONE_OF ? def->arg : ""; *p; p++)
        putchar(*p == '|' ? between : *p);
}

/* Text within quotes of a shell, where `special` needs a backslash before it. */
static void put_quoted(const char *text, const char *special) {
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf(strchr(special, *text) ? "\\%c" : "%c", *text);
}

/* One behind the other, those of the Python package last. */
static void put_commands(void) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("%s%s", i ? " " : "", command_at(i)->name);
    for (size_t i = 0; i < packaged_count(); i++)
        printf(" %s", packaged_at(i)->name);
}

static void print_bash(Arena *a) {
    (void)a;
    puts("# bash completion of qxc");
    puts("_qxc() {\n    local current=${COMP_WORDS[COMP_CWORD]} words\n    case $current in");
    puts("    -*) words='");
    for (size_t i = 0; i < option_count(); i++)
        printf("        -%s%s\n", option_at(i)->name, equals(option_at(i)));
    puts("        ' ;;\n    *) words=");
    fputs("        [ \"$COMP_CWORD\" -gt 1 ] || words='", stdout);
    put_commands();
    puts("' ;;\n    esac\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")");
    puts("    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace\n}\ncomplete -o default -F _qxc "
         "qxc");
}

static void print_zsh(Arena *a) {
    (void)a;
    puts("#compdef qxc\n_arguments \\");
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *def = option_at(i);
        printf("  '*-%s%s[", def->name, equals(def));
        put_quoted(def->help, "[]:\\");
        fputs("]", stdout);
        if (takes_value(def)) {
            fputs(option_may_take(def) ? "::" : ":", stdout);
            put_quoted(def->kind == OPTION_ONE_OF ? "word" : def->arg, "[]:\\");
            fputs(def->kind == OPTION_ONE_OF ? ":(" : ":_files", stdout);
            put_words(def, ' ');
            fputs(def->kind == OPTION_ONE_OF ? ")" : "", stdout);
        }
        puts("' \\");
    }
    fputs("  '1: :_alternative \"commands:command:(", stdout);
    put_commands();
    puts(")\" \"files:model:_files\"' \\\n  '*:file:_files'");
}

static void put_fish_command(const char *name, const char *about) {
    printf("complete -c qxc -n __fish_use_subcommand -a %s -d '", name);
    put_quoted(about, "\\");
    puts("'");
}

static void print_fish(Arena *a) {
    (void)a;
    puts("# fish completion of qxc");
    for (size_t i = 0; i < N_COMMANDS; i++)
        put_fish_command(command_at(i)->name, command_at(i)->about);
    for (size_t i = 0; i < packaged_count(); i++)
        put_fish_command(packaged_at(i)->name, packaged_at(i)->about);
    for (size_t i = 0; i < option_count(); i++) {
        const OptionDef *def = option_at(i);
        printf("complete -c qxc -o %s%s", def->name,
               takes_value(def) && !option_may_take(def) ? " -r" : "");
        if (def->kind == OPTION_ONE_OF) {
            fputs(" -f -a '", stdout);
            put_words(def, ' ');
            fputs("'", stdout);
        }
        fputs(" -d '", stdout);
        put_quoted(def->help, "\\");
        puts("'");
    }
}

/* Text of a man page: a hyphen is an ASCII minus, a dot or quote at the start of a line is text. */
static void put_roff(const char *text) {
    for (; *text; text++)
        if (*text == '-' || *text == '\\')
            printf("\\%c", *text == '-' ? '-' : 'e');
        else
            putchar(*text);
}

static void put_item(const char *title, const char *text) {
    fputs(".TP\n\\fB", stdout);
    put_roff(title);
    fputs("\\fR\n\\&", stdout);
    put_roff(text);
    puts("");
}

static void print_man(Arena *a) {
    puts(".TH QXC 1\n.SH NAME\nqxc \\- a compiler for quantized neural networks\n.SH SYNOPSIS\n.B "
         "qxc\n[command] [options] MODEL\n"
         ".SH DESCRIPTION\nqxc turns a float ONNX model, or one that another tool quantized, into "
         "integers: as ONNX for a runtime, or\n"
         "as portable C. Every decision is a text that can be read, edited and compiled on. An "
         "option takes its value\nas "
         "\\-calib=FILE or \\-calib FILE.\n.SH COMMANDS");
    for (size_t i = 0; i < N_COMMANDS; i++)
        put_item(command_at(i)->usage, command_at(i)->about);
    for (size_t i = 0; i < packaged_count(); i++)
        put_item(packaged_at(i)->usage,
                 arena_strf(a, "%s (Python package)", packaged_at(i)->about).s);
    puts(".SH OPTIONS");
    for (size_t i = 0; i < option_count(); i++) {
        put_item(option_title(a, option_at(i)), option_at(i)->help);
    }
    puts(".SH EXIT STATUS\n0 done; 1 the model or the text is wrong, or cannot do what was asked; "
         "2 the command line is wrong; 3 a\n"
         "file cannot be read or written; 4 an accuracy that was asked for was missed.");
}

bool completion_print(Arena *a, const char *topic) {
    static const struct {
        const char *topic;
        void (*print)(Arena *a);
    } all[] = {{"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(topic, all[i].topic) == 0) {
            all[i].print(a);
            return true;
        }
    return false;
}

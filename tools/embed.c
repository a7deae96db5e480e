/* embed SYMBOL FILE...: writes C on standard output that holds the files' texts, for
 * support/embedded.h: the array SYMBOL in the order of the names given, its length SYMBOL_n. An
 * error is told on stderr, exit status 1. */
#include <stdio.h>
#include <string.h>

static void print_byte(int c) {
    if (c == '"' || c == '\\' || c == '?')
        printf("\\%c", c);
    else if (c >= ' ' && c < 127)
        putchar(c);
    else if (c == '\n')
        fputs("\\n\"\n    \"", stdout);
    else
        printf("\\%03o", (unsigned)c);
}

/* A string literal, of any length: one line of it for each line of the text. */
static int print_text(const char *path, int i) {
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 0;
    }
    printf("static const char text_%d[] =\n    \"", i);
    for (int c; (c = getc(f)) != EOF;)
        print_byte(c);
    fputs("\";\n", stdout);
    int ok = !ferror(f);
    fclose(f);
    return ok;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: embed SYMBOL FILE...\n", stderr);
        return 1;
    }
    puts("/* Made by tools/embed. */\n#include \"support/embedded.h\"\n");
    for (int i = 2; i < argc; i++)
        if (!print_text(argv[i], i))
            return 1;
    printf("\nextern const Embedded %s[];\nextern const size_t %s_n;\n", argv[1], argv[1]);
    printf("const Embedded %s[] = {\n", argv[1]);
    for (int i = 2; i < argc; i++)
        printf("    {\"%s\", text_%d, sizeof text_%d - 1},\n", last_part(argv[i]), i, i);
    printf("    {0},\n};\nconst size_t %s_n = %d;\n", argv[1], argc - 2);
    return fflush(stdout) == 0 ? 0 : 1;
}

/* kernelgen DIR TEMPLATE...: reads kernel templates (format: kernels/kernel.h) and writes
 * DIR/kernels/NAME.c for each kernel, DIR/kernels_gen.c and DIR/kernels_gen.h (part.h). Files that
 * would not change are left alone. A malformed template is reported as FILE:LINE: message, exit
 * status 1. */
#include "tools/kernelgen/part.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: kernelgen DIR TEMPLATE...\n", stderr);
        return 1;
    }
    const Template **templates = check(calloc((size_t)argc, sizeof *templates));
    Instances all = {0};
    Text folder = {0}, table = {0}, header = {0};
    int n = 0;
    for (int i = 2; i < argc; i++)
        instantiate(&all, templates[n++] = read_template(argv[i]));
    print(&folder, "%s/kernels", argv[1]);
    for (int i = 0; i < n; i++) {
        Text part = {0};
        if (templates[i]->chunk)
            continue;
        print_part(&part, &all, templates[i]);
        write_file(folder.p, templates[i]->name, "c", &part);
    }
    print_table(&table, &all);
    write_file(argv[1], "kernels_gen", "c", &table);
    print_header(&header, templates, n);
    write_file(argv[1], "kernels_gen", "h", &header);
    return 0;
}

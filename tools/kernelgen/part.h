/* What kernelgen writes: for each kernel template a C file with its instances, compiled and as
 * text; the table behind kernel_find; a header with the params structs. Errors of a template end
 * the process. The same templates give the same bytes. */
#ifndef KERNELGEN_PART_H
#define KERNELGEN_PART_H

#include "tools/kernelgen/instance.h"

/* The kernels of template t, as `const KernelDef kernels_NAME[]`. */
void print_part(Text *out, const Instances *all, const Template *t);
/* All kernels, found by name, and the chunks. */
void print_table(Text *out, const Instances *all);
void print_header(Text *out, const Template *const *templates, int n);

#endif

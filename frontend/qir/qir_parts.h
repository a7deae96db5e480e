/* Reads parts of a .qir text that stand alone, as the metadata of an ONNX file hold them: the
 * fields of a `stat` line, a `from` clause, what a `quant` line says. One state serves any number
 * of parts. What is not such a part is no error here: the caller knows where it stood. */
#ifndef QXC_FRONTEND_QIR_QIR_PARTS_H
#define QXC_FRONTEND_QIR_QIR_PARTS_H

#include "ir/ir.h"

typedef struct QirParts QirParts;

/* Memory is the arena's; files that a statistic refers to are looked for in `dir`. `wide_zp`: as
 * in QirReadOptions. */
QirParts *qir_parts_new(Arena *a, const char *dir, bool wide_zp);
/* `min=-1.0, max=2.0`. NULL where it is not that. */
Stat *qir_part_stat(QirParts *p, Str text);
/* `from(Conv "a", Relu "b") by "pass"`. False where it is not that. */
bool qir_part_from(QirParts *p, Str text, Provenance *from);
/* `!name = int8q<0.1, 3>`, or the type alone, which then has no alias. NULL where it is not that.
 */
Quant *qir_part_quant(QirParts *p, Str text);

#endif

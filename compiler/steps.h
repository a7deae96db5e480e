/* What pipeline.def does besides passes. Each step reports what is wrong, and is false then. */
#ifndef QXC_COMPILER_STEPS_H
#define QXC_COMPILER_STEPS_H

#include "compiler/pipeline.h"
#include "passes/recipe.h"

#define DO(id) bool step_##id(Job *j, Module *m);
#include "compiler/pipeline.def"

/* Questions of conditions.def. */
bool job_wants_onnx_alone(const Job *j); /* the result may hold operators of ONNX alone */
/* Products within one operator are to become integers, each by itself. */
bool job_quantizes_products(const Job *j);
bool job_is_static(const Job *j); /* neither -dynamic nor -weight-only */
Recipe job_recipe(const Job *j);  /* RECIPE_NONE for the two */
bool job_decides_by_name(const Job *j,
                         Module *m);  /* a donor's names are all there is to decide from */
bool job_stores_tables(const Job *j); /* tables become integers, too */

/* Nodes that somebody wants float state it, where the result is a text or a float model. */
void job_leave_word(Job *j, Module *m);
bool job_adds(const Job *j); /* something is given that may add decisions to those of a model */
bool job_completes(const Job *j, Module *m); /* decisions are to be added to those that it has */

#endif

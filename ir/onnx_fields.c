#include "ir/onnx_fields.h"

uint32_t onnx_data_field(ElemType e) {
    switch (e) {
    case ELEM_FLOAT:
    case ELEM_COMPLEX64: return TENSOR_FLOAT_DATA;
    case ELEM_DOUBLE:
    case ELEM_COMPLEX128: return TENSOR_DOUBLE_DATA;
    case ELEM_INT64: return TENSOR_INT64_DATA;
    case ELEM_UINT32:
    case ELEM_UINT64: return TENSOR_UINT64_DATA;
    case ELEM_STRING: return TENSOR_STRING_DATA;
    default: return TENSOR_INT32_DATA;
    }
}

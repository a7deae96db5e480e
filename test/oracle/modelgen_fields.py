"""Which fields of the schema the models of modelgen fill, and which a message fills.

HANDLED is the set of fields (by full name) that they fill, REFUSED those that qxc does not take; together they are the schema.
"""

import onnx

# A tensor in segments is refused, except in training graphs, which travel as they are.
REFUSED = {"onnx.TensorProto.segment", "onnx.TensorProto.Segment.begin",
           "onnx.TensorProto.Segment.end"}


def schema_fields():
    """Full names of all fields of a ModelProto, in the installed `onnx` package."""
    seen, todo, fields = set(), [onnx.ModelProto.DESCRIPTOR], set()
    while todo:
        message = todo.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for f in message.fields:
            fields.add(f.full_name)
            if f.message_type:
                todo.append(f.message_type)
    return fields


def filled_fields(message, out):
    """Adds the full names of the fields that a message and those in it have."""
    for f, value in message.ListFields():
        out.add(f.full_name)
        if f.type == f.TYPE_MESSAGE:
            for part in value if f.is_repeated else [value]:
                filled_fields(part, out)
    return out


# The fields that modelgen knows how to fill, written down: a field that is new in the schema is
# in none of the two sets, and the test says so.
HANDLED = {f"onnx.{message}.{field}" for message, names in {
    "AttributeProto": "name ref_attr_name doc_string type f i s t g sparse_tensor tp floats ints strings "
                      "tensors graphs sparse_tensors type_protos",
    "DeviceConfigurationProto": "name num_devices device",
    "FunctionProto": "name input output attribute attribute_proto node doc_string opset_import domain "
                     "overload value_info metadata_props",
    "GraphProto": "node name initializer sparse_initializer doc_string input output value_info "
                  "quantization_annotation metadata_props",
    "IntIntListEntryProto": "key value",
    "ModelProto": "ir_version opset_import producer_name producer_version domain model_version doc_string "
                  "graph metadata_props training_info functions configuration",
    "NodeDeviceConfigurationProto": "configuration_id sharding_spec pipeline_stage",
    "NodeProto": "input output name op_type domain overload attribute doc_string metadata_props "
                 "device_configurations",
    "OperatorSetIdProto": "domain version",
    "ShardedDimProto": "axis simple_sharding",
    "ShardingSpecProto": "tensor_name device index_to_device_group_map sharded_dim",
    "SimpleShardedDimProto": "dim_value dim_param num_shards",
    "SparseTensorProto": "values indices dims",
    "StringStringEntryProto": "key value",
    "TensorAnnotation": "tensor_name quant_parameter_tensor_names",
    "TensorProto": "dims data_type float_data int32_data string_data int64_data name doc_string raw_data "
                   "external_data data_location double_data uint64_data metadata_props",
    "TensorShapeProto": "dim",
    "TensorShapeProto.Dimension": "dim_value dim_param denotation",
    "TrainingInfoProto": "initialization algorithm initialization_binding update_binding",
    "TypeProto": "tensor_type sequence_type map_type optional_type sparse_tensor_type opaque_type "
                 "denotation",
    "TypeProto.Map": "key_type value_type",
    "TypeProto.Opaque": "domain name",
    "TypeProto.Optional": "elem_type",
    "TypeProto.Sequence": "elem_type",
    "TypeProto.SparseTensor": "elem_type shape",
    "TypeProto.Tensor": "elem_type shape",
    "ValueInfoProto": "name type doc_string metadata_props",
}.items() for field in names.split()}

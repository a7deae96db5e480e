#!/usr/bin/env python3
"""Reading an ONNX model and writing it again gives the same model, field by field.

On real models, on all of ONNX's own node tests, and on models made by hand for every feature that
is easy to lose. Presence, order, unknown fields and NaN bits count.
"""

import concurrent.futures
import os
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

import onnx_bytes
import packaged
from onnx_bytes import field, varint
from node_cases import node_cases

F, I = TensorProto.FLOAT, TensorProto.INT64
info = helper.make_tensor_value_info


def bare_model(nodes, inputs, outputs, opset=21, ir=10, **graph):
    g = helper.make_graph(nodes, "g", inputs, outputs, **graph)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def relu(**graph):
    return bare_model([helper.make_node("Relu", ["x"], ["y"])], [info("x", F, [2])],
                      [info("y", F, [2])], **graph)


def custom(*attributes, inputs=("x",), outputs=("y",)):
    """A model whose node may have any attributes: its operator is not one of ONNX's."""
    node = helper.make_node("Op", inputs, outputs, domain="custom")
    node.attribute.extend(attributes)
    m = bare_model([node], [info("x", F, [2])], [info("y", F, [2])])
    m.opset_import.add(domain="custom", version=1)
    return m


def unknown(number, payload=b"kept"):
    """An unknown field as bytes: a long one, a varint and two fixed ones."""
    return (field(number, payload) + varint(number + 1 << 3) + varint(2**64 - 3) + varint(number + 2 << 3 | 1) + b"8bytes.." +
            varint(number + 3 << 3 | 5) + b"four")


class RoundTrip(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def same(self, m, text=True):
        data = m if isinstance(m, bytes) else m.SerializeToString()
        back = onnx_bytes.round_trip(data, self.folder.name)
        if onnx_bytes.canonical(data) != onnx_bytes.canonical(back):
            self.fail(onnx_bytes.difference(data, back))
        if text:
            self.same_as_text(data)
        return back

    def same_as_text(self, data):
        """The same by way of .qir, which does not tell raw_data from the typed fields."""
        back = onnx_bytes.canonical_raw(onnx_bytes.round_trip_as_text(data, self.folder.name))
        data = onnx_bytes.canonical_raw(data)
        if data != back:
            self.fail("as text: " + onnx_bytes.difference(data, back))


class Corpora(RoundTrip):
    def files(self, folder):
        files = sorted(folder.glob("*.onnx"))
        if not files:
            self.skipTest(f"needs the models of QXC_SHARED=DIR (DIR/models): {folder} has none")
        for f in files:
            with self.subTest(f.name):
                self.same(f.read_bytes())

    def test_light_models(self):
        self.files(pathlib.Path(onnx.__file__).parent / "backend/test/data/light")

    def test_models_of_the_package(self):
        """Everything that the onnx package has in files: exports of PyTorch, models made by hand."""
        files = sorted((pathlib.Path(onnx.__file__).parent / "backend/test/data").rglob("*.onnx"))
        files = [f for f in files if f.parent.name != "light"]
        self.assertGreater(len(files), 100)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for f, wrong in zip(files, pool.map(self.alone, [f.read_bytes() for f in files])):
                with self.subTest(f"{f.parent.parent.name}/{f.parent.name}"):
                    self.assertIsNone(wrong)

    def test_trained_models(self):
        self.files(onnx_bytes.ROOT / "test/models")

    def test_official_models(self):
        self.files(onnx_bytes.SHARED / "models")

    def test_packaged_models(self):
        for name in packaged.MODELS:
            with self.subTest(name):
                self.same(packaged.packaged(name)[0].read_bytes())

    def test_node_tests(self):
        cases = list(node_cases())
        self.assertGreater(len(cases), 1800)
        models = [case.model.SerializeToString() for case in cases]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(self.alone, models))
        for case, wrong in zip(cases, results):
            with self.subTest(case.name):
                self.assertIsNone(wrong)

    def alone(self, data):
        """Both round trips in a folder of its own: what went wrong, or None."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                back = onnx_bytes.round_trip(data, folder)
                if onnx_bytes.canonical(data) != onnx_bytes.canonical(back):
                    return onnx_bytes.difference(data, back)
                back = onnx_bytes.round_trip_as_text(data, folder)
                if onnx_bytes.canonical_raw(data) != onnx_bytes.canonical_raw(back):
                    return "as text: " + onnx_bytes.difference(data, back)
            except AssertionError as e:
                return str(e)
        return None


class Header(RoundTrip):
    def test_fields(self):
        m = relu()
        m.producer_name, m.producer_version, m.domain = "p", "1.0", "d.e"
        m.model_version, m.doc_string = -7, "two\nlines"
        for k, v in (("b", "1"), ("a", "2"), ("b", "3"), ("", "")):
            m.metadata_props.add(key=k, value=v)
        self.same(m)

    def test_metadata_entries_without_key_or_value(self):
        m = relu()
        for props in (m.metadata_props, m.graph.metadata_props, m.graph.node[0].metadata_props,
                      m.graph.output[0].metadata_props):
            props.add(key="k")
            props.add(value="v")
            props.add()
            props.add(key="", value="")
            props.add(key="_")
        self.same(m)

    def test_empty_is_not_absent(self):
        m = relu()
        m.producer_name = m.doc_string = m.graph.doc_string = m.graph.node[0].name = ""
        m.graph.node[0].domain = m.graph.input[0].doc_string = ""
        m.model_version = 0
        self.same(m)
        for text in ("producer_name", "doc_string", "model_version"):
            m.ClearField(text)
        m.graph.ClearField("name")
        m.graph.node[0].ClearField("domain")
        self.same(m)

    def test_imports(self):
        m = relu()
        del m.opset_import[:]
        m.opset_import.add(version=21)
        m.opset_import.add(domain="zz.custom", version=0)
        m.opset_import.add(domain="ai.onnx.ml", version=3)
        self.same(m)
        m.opset_import[0].domain = "ai.onnx"
        self.same(m)

    def test_newest_versions(self):
        self.same(relu(opset=28, ir=14))
        self.same(relu(opset=1, ir=3))

    def test_configuration_and_training(self):
        m = relu(ir=11)
        m.configuration.add(name="c", num_devices=2, device=["a", "b"])
        node = m.graph.node[0].device_configurations.add(configuration_id="c", pipeline_stage=1)
        spec = node.sharding_spec.add(tensor_name="x", device=[0, 1])
        spec.index_to_device_group_map.add(key=1, value=[0, 1])
        spec.sharded_dim.add(axis=0).simple_sharding.add(dim_value=2, num_shards=2)
        t = m.training_info.add()
        t.initialization.CopyFrom(m.graph)
        t.initialization.initializer.append(
            helper.make_tensor("big", F, [1000], np.zeros(4000, np.uint8).tobytes(), raw=True))
        t.initialization_binding.add(key="w", value="big")
        self.same(m)


class Names(RoundTrip):
    def names(self, x, y):
        """relu() with two names replaced, by bytes."""
        m = onnx_bytes.model(relu().SerializeToString())
        m.graph.node[0].input[0] = m.graph.input[0].name = x
        m.graph.node[0].output[0] = m.graph.output[0].name = y
        m.graph.node[0].name = y
        return m.SerializeToString()

    def test_any_bytes(self):
        for x in (b"a\0b", b"\xff\xfe", b"\n\x1b[31m", b'"%\\', "\u00e9\u4e2d".encode(), b"_",
                  b"a" * 65536):
            with self.subTest(x[:10]):
                self.same(self.names(x, b"y"))
                self.same(self.names(b"x", x))

    def test_omitted(self):
        self.same(custom(inputs=["x", "", "x", ""], outputs=["", "y", "", ""]))

    def test_scopes(self):
        body = helper.make_graph([helper.make_node("Add", ["x", "h"], ["z"])], "b", [],
                                 [info("z", F, None)])
        shadow = helper.make_graph([helper.make_node("Neg", ["h"], ["x"])], "b2", [],
                                   [info("x", F, None)])
        m = bare_model([helper.make_node("Abs", ["x"], ["h"]),
                        helper.make_node("If", ["c"], ["y"], then_branch=body,
                                         else_branch=shadow)],
                       [info("x", F, [2]), info("c", TensorProto.BOOL, [])], [info("y", F, [2])])
        self.same(m)


class Attributes(RoundTrip):
    def test_all_kinds(self):
        t = helper.make_tensor("t", F, [2], [1.0, -0.0])
        g = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "s", [], [info("q", F, [2])])
        ty = helper.make_tensor_type_proto(F, [1, "N", None])
        sp = helper.make_sparse_tensor(helper.make_tensor("v", F, [1], [3.0]),
                                       helper.make_tensor("i", I, [1], [2]), [5])
        values = {"f": 0.1, "i": -5, "s": b"a\0\xff", "t": t, "g": g, "fs": [1.5, float("nan")],
                  "is": [1, -2, 2**62], "ss": [b"", b"x"], "ts": [t, t], "gs": [g, g], "sp": sp,
                  "sps": [sp, sp], "ty": ty, "tys": [ty, helper.make_sequence_type_proto(ty)]}
        attrs = [helper.make_attribute(k, v) for k, v in values.items()]
        self.assertEqual({a.type for a in attrs}, set(range(1, 15)))
        for a in attrs:
            a.doc_string = "doc of " + a.name
        self.same(custom(*attrs))

    def test_empty_lists(self):
        kinds = onnx.AttributeProto
        self.same(custom(*(kinds(name=kinds.AttributeType.Name(k), type=k) for k in
                              (kinds.FLOATS, kinds.INTS, kinds.STRINGS, kinds.TENSORS,
                               kinds.GRAPHS, kinds.SPARSE_TENSORS, kinds.TYPE_PROTOS))))

    def test_packed_ints(self):
        m = custom(onnx.AttributeProto(name="k", type=onnx.AttributeProto.INTS))
        data = m.SerializeToString()
        # The same list of ints, packed into one field, as other writers do.
        packed = onnx.AttributeProto.FromString(
            m.graph.node[0].attribute[0].SerializeToString() + b"\x42\x03\x01\x02\x03")
        m.graph.node[0].attribute[0].CopyFrom(packed)
        self.assertNotEqual(data, m.SerializeToString())
        self.same(m)

    def test_reference_with_a_value(self):
        """ONNX wants a reference without a value; its checker takes both in the main graph."""
        ty = helper.make_tensor_type_proto(F, [1, "N", None])
        values = {"f": -0.0, "i": 5, "zero": 0, "s": b"a\0\xff", "fs": [1.5, float("nan")],
                  "is": [1, -2, 2**62], "ss": [b"", b"x"], "ty": ty, "tys": [ty, ty]}
        attrs = [helper.make_attribute(k, v) for k, v in values.items()]
        for a in attrs:
            a.ref_attr_name = "foo"
        attrs[0].ClearField("type")
        self.same(custom(*attrs))

    def test_opaque_type(self):
        ty = onnx.TypeProto()
        ty.opaque_type.domain, ty.opaque_type.name = "d", "n"
        plain = helper.make_tensor_type_proto(F, [1])
        self.same(custom(helper.make_attribute("o", ty), helper.make_attribute("l", [plain, ty])))


class Tensors(RoundTrip):
    def constants(self, *tensors):
        m = relu()
        m.graph.initializer.extend(tensors)
        return m

    def test_every_type_raw(self):
        sizes = {v: k for k, v in TensorProto.DataType.items()}
        tensors = []
        for number, name in sorted(sizes.items()):
            if number in (TensorProto.UNDEFINED, TensorProto.STRING):
                continue
            size = helper.tensor_dtype_to_np_dtype(number).itemsize
            bits = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2,
                    "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}.get(name, 8 * size)
            for dims in ([], [3], [0], [2, 0, 3], [1, 5]):
                n = int(np.prod(dims))
                raw = bytes((17 * i + 1) % 256 for i in range((n * bits + 7) // 8))
                if name == "BOOL":
                    raw = bytes(i % 2 for i in range(n))
                t = TensorProto(name=f"{name}{dims}", data_type=number, dims=dims, raw_data=raw)
                tensors.append(t)
        self.assertGreater(len(tensors), 100)
        self.same(self.constants(*tensors))

    def test_every_type_typed(self):
        T = TensorProto
        t = [T(name="f", data_type=T.FLOAT, dims=[3], float_data=[1, -0.0, float("inf")]),
             T(name="c64", data_type=T.COMPLEX64, dims=[1], float_data=[1, 2]),
             T(name="d", data_type=T.DOUBLE, dims=[2], double_data=[0.1, float("nan")]),
             T(name="c128", data_type=T.COMPLEX128, dims=[], double_data=[1, 2]),
             T(name="i64", data_type=T.INT64, dims=[2], int64_data=[-1, 2**62]),
             T(name="u64", data_type=T.UINT64, dims=[2], uint64_data=[0, 2**64 - 1]),
             T(name="u32", data_type=T.UINT32, dims=[1], uint64_data=[2**32 - 1]),
             T(name="s", data_type=T.STRING, dims=[2], string_data=[b"a\0", b"\xff"])]
        for name, values in (("INT32", [-2**31, 2**31 - 1]), ("INT16", [-2**15, 5]),
                             ("INT8", [-128, 127]), ("UINT16", [0, 65535]), ("UINT8", [0, 255]),
                             ("BOOL", [0, 1]), ("FLOAT16", [0x3C00, 0xFE01]),
                             ("BFLOAT16", [0x3F80, 65535]), ("FLOAT8E4M3FN", [0, 255]),
                             ("FLOAT8E8M0", [1, 254]), ("FLOAT6E2M3", [1, 63])):
            t.append(T(name=name, data_type=getattr(T, name), dims=[2], int32_data=values))
        for name, count in (("INT4", 3), ("UINT4", 4), ("FLOAT4E2M1", 3), ("INT2", 5),
                            ("UINT2", 8)):
            t.append(T(name=name, data_type=getattr(T, name), dims=[count], int32_data=[0x81, 0x0F]))
        t += [T(name=f"empty{e}", data_type=e, dims=[0]) for e in (T.FLOAT, T.INT8, T.STRING)]
        self.same(self.constants(*t))

    def test_typed_unpacked(self):
        # float_data and int32_data with a tag for each number, as a strict reader must accept.
        t = TensorProto(name="f", data_type=F, dims=[2]).SerializeToString()
        t = TensorProto.FromString(t + b"\x25\0\0\x80\x3f\x25\0\0\0\x40")
        self.assertEqual(list(t.float_data), [1, 2])
        self.same(self.constants(t))

    def test_nan_bits(self):
        bits = np.array([0x7FC01234, 0xFFC00000, 0x7F800001], np.uint32).tobytes()
        self.same(self.constants(TensorProto(name="n", data_type=F, dims=[3], raw_data=bits)))
        # The last one signals, which Python would quiet on the way into the comparison.
        self.same(self.constants(TensorProto.FromString(
            TensorProto(name="n", data_type=F, dims=[2]).SerializeToString() + b"\x22\x08" +
            bits[:8])))

    def test_notes(self):
        t = helper.make_tensor("t", F, [1], [1.0])
        t.doc_string = "doc"
        t.metadata_props.add(key="k", value="v")
        t.data_location = TensorProto.DEFAULT
        self.same(self.constants(t))

    def test_external(self):
        pathlib.Path(self.folder.name, "w.bin").write_bytes(bytes(range(64)))
        tensors = []
        for i, entries in enumerate(([("location", "w.bin")],
                                     [("offset", "8"), ("location", "w.bin"), ("length", "64")],
                                     [("location", "w.bin"), ("length", "8"), ("offset", "56"),
                                      ("checksum", "abc"), ("ours", "")])):
            t = TensorProto(name=f"w{i}", data_type=F, dims=[2], data_location=1)
            for k, v in entries:
                t.external_data.add(key=k, value=v)
            tensors.append(t)
        tensors[1].external_data[2].value = "8"
        self.same(self.constants(*tensors))

    def test_sparse(self):
        m = relu()
        for name in ("s2", "s1"):
            m.graph.sparse_initializer.append(helper.make_sparse_tensor(
                helper.make_tensor(name, F, [2], [3.0, 4.0]),
                helper.make_tensor("idx", I, [2, 2], [0, 1, 1, 2]), [2, 3]))
        self.same(m)

    def test_inputs_with_defaults(self):
        w = [helper.make_tensor(n, F, [1], [float(i)]) for i, n in enumerate("abc")]
        inputs = [info(n, F, [1]) for n in "xabc"]
        node = [helper.make_node("Sum", list("xabc"), ["y"])]
        for order in ("abc", "cab", "cba"):
            for rest in ("xabc", "xb", "xca"):
                with self.subTest(f"{order} {rest}"):
                    tensors = [w["abc".index(n)] for n in order]
                    m = bare_model(node, [i for i in inputs if i.name in rest],
                                   [info("y", F, [1])], opset=8, ir=3, initializer=tensors)
                    self.same(m)


class Types(RoundTrip):
    def test_every_kind(self):
        tensor = helper.make_tensor_type_proto(F, ["N", None, 3])
        unranked = helper.make_tensor_type_proto(F, None)
        types = {"t": tensor, "u": unranked, "scalar": helper.make_tensor_type_proto(I, []),
                 "undefined": helper.make_tensor_type_proto(0, None),
                 "seq": helper.make_sequence_type_proto(tensor),
                 "opt": helper.make_optional_type_proto(helper.make_sequence_type_proto(tensor)),
                 "map": helper.make_map_type_proto(TensorProto.STRING, tensor),
                 "sparse": helper.make_sparse_tensor_type_proto(F, [3, "M"])}
        types["opaque"] = onnx.TypeProto()
        types["opaque"].opaque_type.name = "o"
        types["nothing"] = onnx.TypeProto()
        types["no elem"] = onnx.TypeProto()
        types["no elem"].tensor_type.shape.dim.add(dim_value=1)
        types["no sub"] = onnx.TypeProto()
        types["no sub"].sequence_type.SetInParent()
        for t in types.values():
            t.denotation = "IMAGE"
        m = relu()
        for name, t in types.items():
            m.graph.input.append(helper.make_value_info(name, t))
        m.graph.input.add(name="untyped")
        self.same(m)

    def test_negative_dimensions(self):
        """onnx's checker takes them, and onnxruntime as unknown; so are they here, and stay."""
        m = relu()
        shape = m.graph.input[0].type.tensor_type.shape
        shape.dim[0].dim_value = -1
        shape.dim[0].denotation = "DATA_BATCH"
        shape.dim.add(dim_value=-2)
        shape.dim.add(dim_value=-2**63)
        shape.dim.add()
        m.graph.output[0].type.CopyFrom(m.graph.input[0].type)
        m.graph.value_info.add(name="z").type.sequence_type.elem_type.CopyFrom(
            m.graph.input[0].type)
        onnx.checker.check_model(m)
        self.same(m)
        model = pathlib.Path(self.folder.name, "m.onnx")
        model.write_bytes(m.SerializeToString())
        p = onnx_bytes.qxc(model, text=True)
        self.assertIn("(%x : float[?-1 \"DATA_BATCH\",?-2,?-9223372036854775808,?])", p.stdout)
        self.assertEqual(p.stderr.count("it is taken as unknown"), 1, p.stderr)

    def test_dimensions(self):
        m = relu()
        shape = m.graph.input[0].type.tensor_type.shape
        shape.dim[0].denotation = "DATA_BATCH"
        shape.dim.add(dim_param="")
        shape.dim.add(dim_param="h*w/2", denotation="")
        shape.dim.add(denotation="X")
        shape.dim.add(dim_value=0)
        m.graph.output[0].type.CopyFrom(m.graph.input[0].type)
        self.same(m)

    def test_notes(self):
        m = relu(ir=10)
        for v in (m.graph.input[0], m.graph.output[0]):
            v.doc_string = "doc"
            v.metadata_props.add(key="k", value="v")
        self.same(m)


class ValueInfo(RoundTrip):
    def chain(self, value_info, outputs=("c",)):
        nodes = [helper.make_node("Relu", [i], [o]) for i, o in ("xa", "ab", "bc")]
        w = [helper.make_tensor("w", F, [1], [0.0]), helper.make_tensor("v", F, [1], [0.0])]
        return bare_model(nodes, [info("x", F, [1])], [info(o, F, [1]) for o in outputs],
                          value_info=value_info, initializer=w)

    def test_order(self):
        for names in ("ab", "ba", "b", "wvab", "vwba", "avbw"):
            with self.subTest(names):
                self.same(self.chain([info(n, F, [1]) for n in names]))

    def test_odd_entries(self):
        symbolic = info("w", F, ["K"])
        twice = [info("a", F, [1]), info("a", F, [2])]
        for infos in ([symbolic], twice, [info("nowhere", F, [1])], [info("x", F, [1])],
                      [info("c", F, [5])], [onnx.ValueInfoProto(name="a")],
                      [onnx.ValueInfoProto(name="b", doc_string="d"), info("a", F, [1])],
                      [onnx.ValueInfoProto()], [onnx.ValueInfoProto(name="w", doc_string="d")]):
            with self.subTest(str(infos)[:60]):
                self.same(self.chain(infos))

    def test_odd_outputs(self):
        m = self.chain([], outputs=("c", "x", "w", "c", "a"))
        self.same(m)
        m.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "other"
        m.graph.output[2].doc_string = "constant"
        m.graph.output[3].ClearField("type")
        self.same(m)

    def test_outputs_of_bodies(self):
        for outputs in (["x"], ["w"], ["q", "q"], ["q"]):
            for shape in ([2], None, False):
                infos = [info(o, F, shape) if shape is not False else onnx.ValueInfoProto(name=o)
                         for o in outputs]
                body = helper.make_graph([helper.make_node("Neg", ["x"], ["q"])], "b", [], infos,
                                         initializer=[helper.make_tensor("w", F, [2], [0, 1])])
                m = bare_model([helper.make_node("If", ["k"], ["y", "z"][:len(outputs)],
                                                 then_branch=body, else_branch=body)],
                               [info("x", F, [2]), info("k", TensorProto.BOOL, [])],
                               [info("y", F, [2])])
                with self.subTest(f"{outputs} {shape}"):
                    self.same(m)

    def test_quantization_annotation(self):
        m = self.chain([])
        for name in ("b", "a", "gone"):
            q = m.graph.quantization_annotation.add(tensor_name=name)
            q.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
        m.graph.metadata_props.add(key="k", value="v")
        self.same(m)


class Functions(RoundTrip):
    def function(self, overload="", nodes=None):
        nodes = nodes or [helper.make_node("Elu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
        f = helper.make_function("d", "f", ["x"], ["y"], nodes, [helper.make_opsetid("", 21)],
                                 attributes=["alpha"], overload=overload)
        ref = f.node[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT)
        ref.ref_attr_name = "alpha"
        return f

    def model(self, *functions):
        m = bare_model([helper.make_node("f", ["x"], ["y"], domain="d", overload="2", alpha=1.0)],
                       [info("x", F, [2])], [info("y", F, [2])])
        m.opset_import.add(domain="d", version=1)
        m.functions.extend(functions)
        return m

    def test_function(self):
        f, g = self.function(), self.function("2")
        f.doc_string = "doc"
        f.metadata_props.add(key="k", value="v")
        f.attribute_proto.append(helper.make_attribute("beta", 2.0))
        f.attribute_proto.append(helper.make_attribute("gamma", [1, 2]))
        f.value_info.extend([info("x", F, [2]), info("t", F, ["N"]), info("y", F, [2])])
        g.value_info.extend([info("t", F, [2]), info("y", F, None), info("x", F, [2]),
                             info("gone", F, [2])])
        self.same(self.model(f, g))


class Unknown(RoundTrip):
    def test_fields(self):
        m = custom()
        m.functions.append(Functions().function())
        m.graph.initializer.append(helper.make_tensor("w", F, [1], [1.0]))
        m.graph.value_info.append(info("w", F, [1]))
        m.graph.node[0].attribute.append(helper.make_attribute("a", 1))
        m.graph.node[0].attribute.append(helper.make_attribute("ty", helper.make_tensor_type_proto(F, [1])))
        places = ("", "graph", "graph.node[0]", "graph.node[0].attribute[0]", "graph.input[0]",
                  "graph.input[0].type", "graph.input[0].type.tensor_type",
                  "graph.input[0].type.tensor_type.shape.dim[0]", "graph.output[0]",
                  "graph.value_info[0]", "graph.initializer[0]", "functions[0]",
                  "functions[0].node[0]", "graph.node[0].attribute[1].tp")
        for place in places:
            for number in (500, 536870000):
                with self.subTest(f"{place} {number}"):
                    other = onnx.ModelProto.FromString(m.SerializeToString())
                    part = eval("other." + place) if place else other
                    part.MergeFromString(unknown(number))
                    data = other.SerializeToString()
                    self.assertIn(b"8bytes", data)
                    self.same(data)

    def test_in_metadata(self):
        m = relu()
        m.metadata_props.add(key="k", value="v").MergeFromString(unknown(500))
        self.same(m)


class Determinism(RoundTrip):
    def test_same_bytes_twice(self):
        m = ValueInfo().chain([info(n, F, [1]) for n in "wba"])
        first = self.same(m)
        self.assertEqual(first, self.same(first))


if __name__ == "__main__":
    unittest.main()

"""Files that other tools wrote, as they wrote them: MODELS/tools/NAME of torch, Neural Compressor and Brevitas.

A table says of each file: whether it is read; whether `qxc run` computes what onnxruntime does; how many of its products
are of integers; whether QDQ and QOperator give the file's own results in onnxruntime, unoptimized; and whether the C of
`-integer-only` passes its bench. What is not so stands in EXCEPTIONS, by name, with the reason. Another tool is one more row
of FOLDERS.
"""

import pathlib
import re
import subprocess

import numpy as np
import onnx

from common import MODELS, ROOT, OracleCase, data_inputs, for_each, qxc, qxc_outputs, session, talk

TOOLS = MODELS / "tools"
FOLDERS = ("torch", "inc", "brevitas")
COLUMNS = ("read", "run", "raised", "qdq", "qop", "c")
PRODUCTS = ("Conv", "Gemm", "MatMul")
SAMPLES = 8

# The reason for each "no": (pattern of file names, columns, reason).
FLOAT = "nothing in it is quantized"
EXCEPTIONS = (
    (r"_fp32$", ("raised", "qdq", "qop", "c"), FLOAT),
    (r"_conv_dynamic_", ("raised", "qdq", "qop", "c"), FLOAT),  # the tool quantizes Linear alone, here a Gemm
    (r"_lin\w+_dynamic_", ("c",), "scales of activations are computed when it runs"),
    (r"_lin\w+_(static|qat)_Q\w+_FP32_BIAS$", ("c",), "its last sum is float"),
    (r"_lin\w+_(static|qat)_Q\w+_INT32_BIAS$", ("c",), "its sums are scaled in float"),
    (r"^pt2e_xnn_blk$", ("raised", "c"), "attention and the last LayerNormalization compute in float"),
    (r"^brev_", ("c",), "its last layer is float"),
)

# onnxruntime does not load these; what `qxc run` computes is their reference.
UNKNOWN_TO_ORT = r"^brev_qonnx_"

# How far results may be off, relative to the largest: floats are summed in another order. Where a quantizer follows, that
# moves a result that lies between two steps to the next one, as does a float bias that is rounded to the grid of the sums
# (`qxc run`, QOperator and C do that).
ROUNDING = 1e-6
STEPS = (
    (r"^eagerqat_fake$", 0.03),  # float biases; BatchNormalization's factor is in the scales of the weights
    (r"^pt2e_xnn_blk$", 0.01),  # attention in float between quantizers of 8 bits
    (r"^brev_.*conv8", 0.01),  # float biases, 8 bits
    (r"^brev_.*conv4", 0.15),  # float biases, 4 bits
)


def files(folder):
    return sorted(p for p in (TOOLS / folder).glob("*.onnx"))


def inc_files(model):
    """Those of a model that was quantized, not at run time."""
    return [p for p in files("inc") if re.search(rf"_{model}_(static|qat)_", p.stem)]


def exception(name, column):
    for pattern, columns, reason in EXCEPTIONS:
        if column in columns and re.search(pattern, name):
            return reason
    return None


def bound(name):
    return max([ROUNDING, *(step for pattern, step in STEPS if re.search(pattern, name))])


def samples_for(path, model):
    """SAMPLES inputs with a sample axis: the tool's own where they lie beside the file, else random ones."""
    kind = re.search(r"(lin1|lin3d|conv)_", path.name)
    beside = path.parent / f"{kind[1]}.npz" if kind else None
    if beside and beside.exists():
        with np.load(beside) as data:
            return [{name: array[k:k + 1] for name, array in data.items()} for k in range(SAMPLES)]
    rng = np.random.default_rng(0)
    shapes = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in data_inputs(model.graph)}
    return [{name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
            for _ in range(SAMPLES)]


def in_onnxruntime(path, samples):
    runner = session(path)
    return [runner.run(None, sample) for sample in samples]


def off(reference, got):
    """The largest difference over the largest number."""
    worst = 0.0
    for want, have in zip(reference, got, strict=True):
        for x, y in zip(want, have, strict=True):
            x, y = np.asarray(x, np.float64), np.asarray(y, np.float64).reshape(np.shape(x))
            worst = max(worst, float(np.max(np.abs(x - y), initial=0) / max(np.max(np.abs(x), initial=0), 1e-30)))
    return worst


def integer_products(path):
    """How many products of the true form read quantized types, and how many there are."""
    text = qxc(path, "-form=true", "-quiet").stdout
    quantized = set(re.findall(r"(?m)^ +(?:const )?%(\S+) : !", text))
    quantized |= set(re.findall(r"%(\S+) : !", re.search(r"graph @[^(]*\((.*?)\) ->", text)[1]))
    products = re.findall(rf"(?m)^ +%\S+ : .* = (?:{'|'.join(PRODUCTS)})\(%([^,)]+), %([^,)]+)", text)
    return sum(set(pair) <= quantized for pair in products), len(products)


def operators(path):
    return sorted(n.op_type for n in onnx.load(path).graph.node)


class ToolFiles(OracleCase):
    expected_seconds = 60

    def emitted(self, path, form):
        out = self.scratch / f"{path.stem}.{form}.onnx"
        qxc(path, f"-emit={form}", "-no-sync", "-quiet", "-o", out)
        return out

    def run_here(self, path, samples):
        result = []
        for sample in samples:
            got = qxc_outputs(path, sample, self.scratch, "-batch=none", "-quiet")
            result.append(list(got.values()))
        return result

    def bench(self, path):
        source = self.scratch / f"{path.stem}.c"
        qxc(path, "-emit=c", "-integer-only", "-io=quant", "-testbench", "-random=4", "-no-sync", "-quiet", "-o", source)
        program = source.with_suffix(".exe")
        subprocess.run(["cc", "-std=c99", "-O0", "-o", program, source, "-lm"], check=True)
        subprocess.run([program], check=True, capture_output=True)

    def row(self, path):
        """What is so of one file: column -> "yes", or the words of what went wrong."""
        model = onnx.load(path)
        samples = samples_for(path, model)
        known = not re.search(UNKNOWN_TO_ORT, path.stem)
        here = self.run_here(path, samples)
        reference = in_onnxruntime(path, samples) if known else here

        def close(got):
            far = off(reference, got)
            assert far <= bound(path.stem), f"{far:.3g} off"

        def raised():
            integer, products = integer_products(path)
            dynamic = "_dynamic_" in path.stem
            assert products and (integer == products or dynamic), f"{integer} of {products} products"

        steps = {
            "read": lambda: qxc(path, "-emit=onnx", "-no-sync", "-quiet", "-o", self.scratch / "same.onnx"),
            "run": lambda: close(here),
            "raised": raised,
            "qdq": lambda: close(in_onnxruntime(self.emitted(path, "qdq"), samples)),
            "qop": lambda: close(in_onnxruntime(self.emitted(path, "qop"), samples)),
            "c": lambda: self.bench(path),
        }
        result = {}
        for column in COLUMNS:
            try:
                steps[column]()
                result[column] = "yes"
            except (AssertionError, subprocess.CalledProcessError) as error:
                result[column] = str(error).splitlines()[-1][-160:]
        return result

    @for_each(*FOLDERS)
    def test_table(self, folder):
        if not (TOOLS / folder).is_dir():
            self.skipTest(f"needs the models of QXC_SHARED=DIR (DIR/models): tools/{folder}")
        talk(f"\n{'':58}" + " ".join(f"{c:6}" for c in COLUMNS))
        for path in files(folder):
            row = self.row(path)
            told = {c: exception(path.stem, c) for c in COLUMNS}
            talk(f"{path.stem:58}" + " ".join(f"{'yes' if row[c] == 'yes' else 'no':6}" for c in COLUMNS)
                 + "; ".join(sorted({told[c] for c in COLUMNS if told[c]})))
            for column in COLUMNS:
                with self.subTest(file=path.name, column=column):
                    if told[column]:
                        self.assertNotEqual(row[column], "yes", "an exception that is none any more")
                    else:
                        self.assertEqual(row[column], "yes")


class Pages(OracleCase):
    """The commands of docs/from-*.md that name files of the tools: they work, and QDQ and QOperator give the file's results."""

    def commands(self, page):
        return re.findall(r"(?m)^    \$ qxc (.*)$", (ROOT / f"docs/{page}.md").read_text())

    @for_each("torch", "neural-compressor")
    def test_page(self, tool):
        page, folder = f"from-{tool}", {"neural-compressor": "inc"}.get(tool, tool)
        if not (TOOLS / folder).is_dir():
            self.skipTest(f"needs the models of QXC_SHARED=DIR (DIR/models): tools/{folder}")
        commands = self.commands(page)
        self.assertTrue(commands)
        for command in commands:
            with self.subTest(command=command):
                words = command.split()
                out = self.scratch / words[-1]
                source = TOOLS / folder / words[0]
                rest = [re.sub(r"=(\S+\.(?:onnx|npz))$", rf"={TOOLS / folder}/\1", w) for w in words[1:-1]]
                qxc(source, *rest, out, "-force", "-quiet")
                own = re.search(r"-weights-from=(\S+)", " ".join(rest))
                self.assertTrue(out.exists())
                if out.suffix == ".onnx" and "fp32" not in source.name or own:
                    path = pathlib.Path(own[1]) if own else source
                    samples = samples_for(path, onnx.load(path))
                    far = off(in_onnxruntime(path, samples), in_onnxruntime(out, samples))
                    self.assertLessEqual(far, bound(path.stem))


class NeuralCompressor(OracleCase):
    """A float model of its own with what a file of Neural Compressor says gives that file's results."""

    expected_seconds = 30

    def made(self, name, *options):
        """The file, what qxc makes of the float model and the data of both."""
        path = self.shared_model(f"tools/inc/{name}.onnx")
        kind = re.search(r"(lin1|lin3d|conv)_", name)[1]
        out = self.scratch / "made.onnx"
        form = "qop" if "QLinear" in name else "qdq"
        qxc(path.parent / f"{kind}_fp32.onnx", *(o.format(path) for o in options), f"-emit={form}", "-force", "-no-sync",
            "-quiet", "-o", out)
        return path, out, samples_for(path, onnx.load(path))

    def same(self, name, *options):
        path, out, samples = self.made(name, *options)
        self.assertLessEqual(off(in_onnxruntime(path, samples), in_onnxruntime(out, samples)), ROUNDING)

    @for_each("QDQ_OP_FP32_BIAS", "QDQ_OP_INT32_BIAS", "QDQ_OP_FP32_BIAS_QDQ")
    def test_recipe(self, recipe):
        """From data alone: the operators of the tool's own file of that recipe."""
        for model in ("lin1", "lin3d"):
            for form in ("QDQ", "QLinear"):
                name = f"211o113r_{model}_static_{form}_{recipe}"
                with self.subTest(file=name):
                    data = self.shared_model(f"tools/inc/{model}.npz")
                    path, out, _ = self.made(name, f"-calib={data}", f"-recipe={recipe}")
                    self.assertEqual(operators(out), operators(path))

    @for_each("lin1", "lin3d", "conv")
    def test_weights_from(self, model):
        self.shared_model("tools/inc")
        for path in inc_files(model):
            recipe = re.search(r"QDQ_OP_\w+$", path.stem)
            with self.subTest(file=path.stem):
                self.same(path.stem, "-weights-from={}")
                if recipe:
                    self.same(path.stem, "-weights-from={}", f"-recipe={recipe[0]}")

    @for_each("lin1", "lin3d")
    def test_weights_from_dynamic(self, model):
        """What is quantized at run time there is here, too: the file's own results."""
        self.shared_model("tools/inc")
        for path in files("inc"):
            if re.search(rf"_{model}_dynamic_", path.stem):
                with self.subTest(file=path.stem):
                    self.same(path.stem, "-weights-from={}")

    def test_weights_from_transposed(self):
        """The tool's dynamic files of the Conv model hold the float weight of the Gemm transposed."""
        for name in ("241_conv_dynamic_QDQ", "211o113r_conv_dynamic_QDQ_QDQ_OP_FP32_BIAS"):
            path = self.shared_model(f"tools/inc/{name}.onnx")
            text, out = self.scratch / "made.qir", self.scratch / "made.onnx"
            said = qxc(path.parent / "conv_fp32.onnx", f"-weights-from={path}", "-form=float", "-no-sync", "-o", text).stderr
            self.assertIn("'f.weight' is taken transposed", said)
            qxc(text, "-emit=onnx", "-no-sync", "-o", out)
            samples = samples_for(path, onnx.load(path))
            self.assertLessEqual(off(in_onnxruntime(path, samples), in_onnxruntime(out, samples)), ROUNDING)

    @for_each("lin1", "lin3d", "conv")
    def test_scales_from(self, model):
        """The float model has the weights of the static files: their scales give the same integers."""
        self.shared_model("tools/inc")
        for path in inc_files(model):
            with self.subTest(file=path.stem):
                _, out, _ = self.made(path.stem, "-scales-from={}")
                self.assertTrue(set(operators(out)) & {"QuantizeLinear"}, "it ends as float")
                if "211o113r" in path.stem and "static" in path.stem and "INT32" not in path.stem:
                    self.same(path.stem, "-scales-from={}")

    def test_one_reader_is_rounded(self):
        """A value that a product reads rounded and the Add of the residual as it is."""
        kinds = onnx.TensorProto
        w = np.array([[.1, .2, .3, .4], [.5, .6, .7, .8], [.9, 1., 1.1, 1.2], [1.3, 1.4, 1.5, 1.27]], np.float32)
        relu = onnx.helper.make_node("Relu", ["x"], ["r"])
        add = onnx.helper.make_node("Add", ["r", "m"], ["y"])
        ends = [[onnx.helper.make_tensor_value_info(n, kinds.FLOAT, [1, 4])] for n in "xy"]

        def saved(name, nodes, constants):
            graph = onnx.helper.make_graph(nodes, "g", *ends, [onnx.numpy_helper.from_array(v, k)
                                                               for k, v in constants.items()])
            path = self.scratch / name
            onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
            return path

        real = saved("real.onnx", [relu, onnx.helper.make_node("MatMul", ["r", "w"], ["m"]), add], {"w": w})
        scales = {"rs": np.float32(.1), "rz": np.uint8(0), "ws": np.float32(.01), "wz": np.int8(0)}
        own = saved("own.onnx", [
            relu, onnx.helper.make_node("QuantizeLinear", ["r", "rs", "rz"], ["rq"]),
            onnx.helper.make_node("DequantizeLinear", ["rq", "rs", "rz"], ["rd"]),
            onnx.helper.make_node("DequantizeLinear", ["w_quantized", "ws", "wz"], ["wd"]),
            onnx.helper.make_node("MatMul", ["rd", "wd"], ["m"]), add],
            {"w_quantized": np.clip(np.rint(w / np.float32(.01)), -128, 127).astype(np.int8), **scales})
        samples = [{"x": x} for x in np.random.default_rng(3).uniform(-1, 3, (8, 1, 4)).astype(np.float32)]
        for form in ("qdq", "qop"):
            out = self.scratch / f"made.{form}.onnx"
            qxc(real, f"-weights-from={own}", f"-emit={form}", "-no-sync", "-quiet", "-o", out)
            self.assertLessEqual(off(in_onnxruntime(own, samples), in_onnxruntime(out, samples)), ROUNDING)

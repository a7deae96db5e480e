// One value: its quantization in words, and a histogram that shows what the integers cannot hold.

const several = x =>
    Array.isArray(x) ? `${real(Math.min(...x))} to ${real(Math.max(...x))} (${x.length} channels)` : real(x);
const points = x =>
    Array.isArray(x) ? (new Set(x).size === 1 ? String(x[0]) : `${Math.min(...x)} to ${Math.max(...x)}`) : String(x);

// As it is stored; what its integers mean stands below.
const typeOf = v =>
    v.element ? shown(v.element + (v.shape ? `[${v.shape.map(d => d ?? "?").join(", ")}]` : "")) : shown(v.type);

function facts(list) {
    const dl = element("dl");
    for (const [key, text] of list) if (text !== undefined) dl.append(element("dt", {}, key), element("dd", {}, text));
    return dl;
}

function quantizationFacts(q) {
    if (!q) return [["quantized", "no: it is float"]];
    const said = { open: "to be decided", dynamic: "at run time", accumulator: "by its operands" }[q.kind];
    return [
        [
            "integers",
            (q.storage ?? "") + (q.integers ? ` ${q.integers[0]} … ${q.integers[1]}` : "") + (said ? ` (${said})` : ""),
        ],
        ["scale", q.scale === undefined ? undefined : several(q.scale)],
        ["zero point", q.zero_point === undefined ? undefined : points(q.zero_point)],
        ["they hold", q.real_range && `${real(q.real_range[0])} … ${real(q.real_range[1])}`],
    ];
}

function valueFacts(v) {
    const h = v.histogram,
        seen = v.calibrated ?? (h && { min: h.low, max: h.high });
    const clipped =
        h && v.quantization?.real_range && v.quantization.axes.length === 0
            ? `${percent(h.clipped_below / h.elements)} below, ${percent(h.clipped_above / h.elements)} above`
            : undefined;
    return facts([
        ["type", typeOf(v)],
        ...quantizationFacts(v.quantization),
        ["it is", seen && `${real(seen.min)} … ${real(seen.max)}`],
        ["cut off", v.cut_off_on_purpose ? "on purpose: the next layer cuts as well, or a mask hides it" : clipped],
        ["SQNR", v.sqnr_db === undefined ? undefined : decibels(loss(v.sqnr_db))],
        [
            "sensitivity",
            v.sensitivity_db === undefined
                ? undefined
                : decibels(v.sensitivity_db) + " at the outputs if it alone is rounded",
        ],
    ]);
}

// Heights are square roots: the zeros behind a Relu would leave nothing to see of all others.
function histogram(v) {
    const h = v.histogram;
    if (!h || h.high <= h.low) return undefined;
    const range = v.quantization?.axes?.length === 0 ? v.quantization.real_range : undefined;
    const W = 320,
        H = 96,
        base = 76;
    const low = Math.min(h.low, range ? range[0] : h.low),
        high = Math.max(h.high, range ? range[1] : h.high);
    const x = value => 4 + ((W - 8) * (value - low)) / (high - low || 1);
    const most = Math.sqrt(Math.max(...h.counts)),
        width = (h.high - h.low) / h.counts.length;
    const label =
        `Histogram of ${shown(v.name)} from ${real(h.low)} to ${real(h.high)}` +
        (range ? `; its integers hold ${real(range[0])} to ${real(range[1])}` : "");
    const svg = drawn("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
    if (range)
        svg.append(
            drawn("rect", {
                x: x(range[0]),
                y: 2,
                width: Math.max(1, x(range[1]) - x(range[0])),
                height: base - 2,
                style: "fill: var(--track)",
            }),
        );
    h.counts.forEach((n, i) => {
        const from = h.low + i * width,
            to = from + width,
            middle = (from + to) / 2,
            height = n ? Math.max(1, ((base - 6) * Math.sqrt(n)) / most) : 0;
        const cut = range && (middle < range[0] || middle > range[1]);
        if (height)
            svg.append(
                drawn("rect", {
                    x: x(from),
                    y: base - height,
                    width: Math.max(0.5, x(to) - x(from) - 0.5),
                    height,
                    style: `fill: var(${cut ? "--clip" : "--bar"})`,
                }),
            );
    });
    for (const end of range ?? [])
        svg.append(
            drawn("line", {
                x1: x(end),
                x2: x(end),
                y1: 2,
                y2: base,
                style: "stroke: var(--ink); stroke-dasharray: 3 2",
            }),
        );
    svg.append(
        drawn("line", { x1: 0, x2: W, y1: base, y2: base, style: "stroke: var(--quiet)" }),
        drawn("text", { x: 2, y: H - 4, class: "axis" }, real(low)),
        drawn("text", { x: W - 2, y: H - 4, class: "axis", "text-anchor": "end" }, real(high)),
    );
    return svg;
}

function valueCard(title, v) {
    return element(
        "div",
        { class: "value" },
        element("h3", {}, `${title} ${shown(v.name)}`),
        histogram(v),
        valueFacts(v),
    );
}

function weightCard(w) {
    return element(
        "div",
        { class: "value" },
        element("h3", {}, `weight ${shown(w.name)}`),
        facts([
            ["type", typeOf(w)],
            ["bytes", w.bytes === undefined ? undefined : count(w.bytes)],
            ...(w.quantization ? quantizationFacts(w.quantization) : []),
        ]),
    );
}

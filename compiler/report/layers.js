// The table: one row a layer, which opens to its values and weights.

const COLUMNS = [
    { key: "place", title: "Layer", of: (l, place) => place, sort: "place in the model" },
    { key: "sqnr", title: "SQNR", of: l => loss(l.sqnr_db), sort: "loss, worst first", bar: "--bar" },
    {
        key: "sensitivity",
        title: "Sensitivity",
        of: l => l.sensitivity_db,
        sort: "sensitivity, worst first",
        bar: "--bar2",
    },
    { key: "macs", title: "Work", of: l => l.macs, sort: "work, most first", down: true, text: amount },
    { key: "weights", title: "Weights", of: weightBytes, sort: "weights, most first", down: true, text: bytes },
];
const FILTERS = {
    all: () => true,
    integer: l => l.kind === "integer",
    float: l => l.kind === "float",
    bad: l => Math.min(loss(l.sqnr_db) ?? Infinity, l.sensitivity_db ?? Infinity) < 30,
    products: l => l.macs > 0,
};
const FILTER_TITLES = {
    all: "all layers",
    integer: "on integers",
    float: "float",
    bad: "below 30 dB",
    products: "that multiply",
};

const rows = []; // of each layer: its row, and once it was opened the one below
let chosen = -1;

// A long bar is a large loss: what needs a look catches the eye. Full at 0 dB, empty at 60.
function bar(x, colour) {
    const part = Math.max(0, Math.min(1, (60 - x) / 60));
    return element(
        "div",
        { class: "bar" },
        element("span", {}, decibels(x)),
        drawn(
            "svg",
            { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
            drawn("rect", { width: 100, height: 10, rx: 2, style: "fill: var(--track)" }),
            drawn("rect", { width: 100 * part, height: 10, rx: 2, style: `fill: var(${colour})` }),
        ),
    );
}

function cell(column, layer) {
    const x = column.of(layer),
        td = element("td", { "data-title": column.title });
    if (column.bar) {
        if (x !== undefined) td.append(bar(x, column.bar));
    } else {
        td.className = "number";
        if (x) td.append(element("span", { title: count(x) }, column.text(x)));
    }
    return td;
}

function firstCell(layer, number) {
    const runs =
        layer.onnxruntime && layer.onnxruntime !== layer.op
            ? layer.onnxruntime === "nothing"
                ? `, dropped by ${report.runtime}`
                : `, ${shown(layer.onnxruntime)} in ${report.runtime}`
            : "";
    const button = element(
        "button",
        { type: "button", class: "name", "aria-expanded": "false", "aria-controls": `details-${number}` },
        layerTitle(layer),
    );
    button.addEventListener("click", () => choose(number, rows[number].details?.hidden ?? true, true));
    return element(
        "td",
        { "data-title": "Layer" },
        button,
        element(
            "div",
            {},
            element("span", { class: `chip ${layer.kind}` }, layer.kind),
            shown(layer.op) + runs,
            layer.conversions
                ? element(
                      "span",
                      { class: "quiet" },
                      ` · ${layer.conversions} conversion${layer.conversions > 1 ? "s" : ""}`,
                  )
                : "",
        ),
        layer.why ? element("div", { class: "why" }, shown(layer.why)) : "",
    );
}

function linkTo(number, title) {
    const b = element("button", { type: "button" }, title);
    b.addEventListener("click", () => choose(number, true));
    return b;
}

function neighboursOf(layer) {
    const before = new Set(layer.inputs.map(v => report.values[v].maker).filter(m => m !== null));
    const after = new Set(layer.outputs.flatMap(v => report.values[v].readers));
    const list = (title, set) =>
        set.size
            ? element(
                  "p",
                  { class: "links" },
                  title + " ",
                  ...[...set].map(n => linkTo(n, layerTitle(report.layers[n]))),
              )
            : undefined;
    return [list("reads", before), list("read by", after)];
}

function details(layer, number) {
    const inputs = layer.inputs.filter(v => report.values[v].maker === null);
    const made = layer.from.map(f => `${shown(f.op)} ${shown(f.name)}`.trim()).join(", ");
    const cards = [
        ...layer.outputs.map(v => valueCard("makes", report.values[v])),
        ...inputs.map(v => valueCard("takes", report.values[v])),
        ...layer.weights.map(weightCard),
    ];
    const td = element(
        "td",
        { colspan: COLUMNS.length },
        made ? element("p", { class: "quiet" }, `made of ${made}`) : undefined,
        layer.operators.length > 1
            ? element("p", { class: "quiet" }, `spelled as ${layer.operators.map(shown).join(", ")}`)
            : undefined,
        element("div", { class: "values" }, ...cards),
        ...neighboursOf(layer),
    );
    return element("tr", { class: "details", id: `details-${number}` }, td);
}

function open(number, wanted) {
    const row = rows[number];
    if (wanted && !row.details) {
        row.details = details(report.layers[number], number);
        row.tr.after(row.details);
    }
    if (row.details) row.details.hidden = !wanted;
    row.tr.querySelector(".name").setAttribute("aria-expanded", String(wanted));
}

// By a click in the table the row stays where it is; from elsewhere it comes into view.
function choose(number, wanted, stay = false) {
    if (chosen >= 0) rows[chosen].tr.classList.remove("chosen");
    chosen = number;
    rows[number].tr.classList.add("chosen");
    if (rows[number].tr.hidden) {
        byId("search").value = "";
        byId("filter").value = "all";
        arrange();
    }
    open(number, wanted);
    if (!stay) rows[number].tr.scrollIntoView({ block: "nearest" });
    showInGraph(number);
}

const wanted = (layer, words) => {
    const text = [
        layer.name,
        layer.op,
        ...layer.operators,
        layer.onnxruntime,
        layer.why,
        layer.kind,
        ...layer.from.flatMap(f => [f.op, f.name]),
        ...layer.outputs.map(v => report.values[v].name),
    ]
        .join("\n")
        .toLowerCase();
    return words.every(w => text.includes(w));
};

function arrange() {
    const column = COLUMNS.find(c => c.key === byId("sort").value),
        words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const keep = FILTERS[byId("filter").value],
        sign = column.down ? -1 : 1;
    const value = i => column.of(report.layers[i], i) ?? (column.down ? -1 : Infinity);
    const order = [...report.layers.keys()].sort((a, b) => {
        const x = value(a),
            y = value(b);
        return x === y ? a - b : x < y ? -sign : sign;
    });
    let found = 0;
    for (const i of order) {
        const fits = keep(report.layers[i]) && wanted(report.layers[i], words);
        found += fits;
        rows[i].tr.hidden = !fits;
        if (rows[i].details && !fits) open(i, false);
        graph.nodes[i]?.classList.toggle("dimmed", !fits);
    }
    byId("rows").append(...order.flatMap(i => (rows[i].details ? [rows[i].tr, rows[i].details] : [rows[i].tr])));
    byId("found").textContent = `${found} of ${report.layers.length} layers`;
    [...byId("head").children].forEach((th, k) => {
        if (COLUMNS[k] === column) th.setAttribute("aria-sort", column.down ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
    });
}

function startLayers() {
    for (const c of COLUMNS) {
        const button = element("button", { type: "button" }, c.title);
        button.addEventListener("click", () => {
            byId("sort").value = c.key;
            arrange();
        });
        byId("head").append(element("th", { scope: "col", class: c.down ? "number" : null }, button));
        byId("sort").append(element("option", { value: c.key }, c.sort));
    }
    for (const [key, title] of Object.entries(FILTER_TITLES))
        byId("filter").append(element("option", { value: key }, title));
    report.layers.forEach((layer, i) => {
        rows.push({
            tr: element("tr", { id: `layer-${i}` }, firstCell(layer, i), ...COLUMNS.slice(1).map(c => cell(c, layer))),
        });
    });
    if (report.layers.some(l => l.sqnr_db !== undefined)) byId("sort").value = "sqnr";
    byId("search").addEventListener("input", arrange);
    byId("filter").addEventListener("change", arrange);
    byId("sort").addEventListener("change", arrange);
    arrange();
}

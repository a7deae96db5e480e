// The graph of the layers. What is chosen here is chosen in the table, and the other way around.

const COLOURS = {
    sqnr: { title: "loss (SQNR)", of: l => lossClass(loss(l.sqnr_db)), number: l => loss(l.sqnr_db) },
    sensitivity: { title: "sensitivity", of: l => lossClass(l.sensitivity_db), number: l => l.sensitivity_db },
    kind: { title: "integer or float", of: l => (l.kind === "integer" ? 0 : 3), number: l => loss(l.sqnr_db) },
};

const graph = { scale: 1, nodes: [], edges: [] };

function graphEdges() {
    const edges = [];
    report.values.forEach(v => {
        if (v.maker === null) return;
        for (const reader of v.readers) if (reader !== v.maker) edges.push([v.maker, reader]);
    });
    return edges;
}

// Names tell layers apart by their ends, operators by their beginnings: as much of a text as has room.
const ruler = document.createElement("canvas").getContext("2d"),
    family = getComputedStyle(document.body).fontFamily;
function fitting(text, font, room, fromEnd) {
    ruler.font = `${font} ${family}`;
    const part = n => (n >= text.length ? text : fromEnd ? "…" + text.slice(text.length - n) : text.slice(0, n) + "…");
    let n = text.length;
    for (let width; n > 1 && (width = ruler.measureText(part(n)).width) > room;)
        n = Math.min(n - 1, Math.ceil((n * room) / width));
    return part(n);
}

function drawNode(layer, number, place) {
    const left = place.x - NODE.width / 2,
        worst = loss(layer.sqnr_db);
    const said = [layerTitle(layer), shown(layer.op), layer.kind, decibels(worst), layer.why && shown(layer.why)]
        .filter(Boolean)
        .join("\n");
    const node = drawn(
        "g",
        { class: `node ${layer.kind}` },
        drawn("title", {}, said),
        drawn("rect", { x: left, y: place.y, width: NODE.width, height: NODE.height, rx: 6 }),
        drawn("text", { x: left + 8, y: place.y + 18, class: "operator", "font-weight": 600 }), // `paint` writes both
        drawn("text", { x: left + NODE.width - 8, y: place.y + 18, class: "small decibels", "text-anchor": "end" }),
        drawn("text", { x: left + 8, y: place.y + 36, class: "small" }, fitting(layerTitle(layer), "10px", 150, true)),
    );
    node.addEventListener("click", () => choose(number, true));
    return node;
}

// From the foot of one to the head of the next, through the points between.
function drawLine(nodes, line) {
    const foot = nodes[line[0]];
    let path = `M${foot.x} ${foot.y + NODE.height}`;
    for (let i = 1; i < line.length; i++) {
        const a = nodes[line[i - 1]],
            b = nodes[line[i]],
            from = a.y + NODE.height,
            bend = i < line.length - 1;
        const half = (from + b.y) / 2;
        path += `C${a.x} ${half} ${b.x} ${half} ${b.x} ${b.y}`;
        if (bend) path += `V${b.y + NODE.height}`;
    }
    return drawn("path", { class: "edge", d: path, "marker-end": "url(#tip)" });
}

function drawGraph() {
    const plan = layout(report.layers.length, graphEdges());
    const tip = drawn(
        "marker",
        {
            id: "tip",
            viewBox: "0 0 8 8",
            refX: 7,
            refY: 4,
            markerWidth: 8,
            markerHeight: 8,
            markerUnits: "userSpaceOnUse",
            orient: "auto",
        },
        drawn("path", { d: "M0 0L8 4L0 8z", style: "fill: var(--quiet)" }),
    );
    const svg = drawn(
        "svg",
        {
            viewBox: `0 0 ${plan.width} ${plan.height}`,
            role: "img",
            "aria-label": `Graph of ${report.layers.length} layers; the table beside it says the same`,
        },
        drawn("defs", {}, tip),
    );
    graph.edges = plan.lines.map(l => ({ from: l.from, to: l.to, path: drawLine(plan.nodes, l.line) }));
    graph.nodes = report.layers.map((l, i) => drawNode(l, i, plan.nodes[i]));
    svg.append(...graph.edges.map(e => e.path), ...graph.nodes);
    graph.plan = plan;
    byId("graph").classList.toggle("tall", plan.height > 3 * plan.width); // a strip that says nothing on a sheet of paper
    graph.svg = svg;
    byId("canvas").replaceChildren(svg);
}

function zoom(scale) {
    graph.scale = Math.min(3, Math.max(0.05, scale));
    graph.svg.setAttribute("width", Math.round(graph.plan.width * graph.scale));
    graph.svg.setAttribute("height", Math.round(graph.plan.height * graph.scale));
}

// As wide as there is room; `least` keeps letters readable where the graph is wider than that.
function fitGraph(least) {
    zoom(Math.min(1, Math.max(least, (byId("canvas").clientWidth - 4) / graph.plan.width)));
}

function scrollToNode(number) {
    const place = graph.plan.nodes[number],
        canvas = byId("canvas");
    const offset = Math.max(0, (canvas.clientWidth - graph.plan.width * graph.scale) / 2);
    canvas.scrollTo({
        left: offset + place.x * graph.scale - canvas.clientWidth / 2,
        top: (place.y + NODE.height / 2) * graph.scale - canvas.clientHeight / 2,
    });
}

function paint(kind) {
    const by = COLOURS[kind];
    report.layers.forEach((l, i) => {
        const c = by.of(l),
            x = by.number(l);
        graph.nodes[i].querySelector("rect").style.fill = `var(--${c === undefined ? "none" : "c" + c})`;
        graph.nodes[i].querySelector(".decibels").textContent = decibels(x);
        graph.nodes[i].querySelector(".operator").textContent = fitting(
            shown(l.op),
            "600 12px",
            x === undefined ? 150 : 98,
            false,
        );
    });
    const items =
        kind === "kind"
            ? [
                  ["c0", "integer"],
                  ["c3", "float (dashed)"],
              ]
            : [...CLASSES.map((c, i) => ["c" + i, c[1]]), ["none", "not measured, or cut off by the next on purpose"]];
    byId("legend").replaceChildren(
        ...items.map(([colour, text]) =>
            element("li", {}, element("span", { class: "swatch", style: `background: var(--${colour})` }), text),
        ),
    );
}

function showInGraph(number) {
    graph.nodes.forEach((n, i) => n.classList.toggle("chosen", i === number));
    for (const e of graph.edges) e.path.classList.toggle("chosen", e.from === number || e.to === number);
    scrollToNode(number);
}

function startGraph() {
    if (!report.layers.length) {
        byId("graph").remove();
        return;
    }
    drawGraph();
    const measured = report.layers.some(l => l.sqnr_db !== undefined),
        tried = report.layers.some(l => l.sensitivity_db !== undefined);
    for (const [key, by] of Object.entries(COLOURS))
        if (key === "kind" || (key === "sqnr" ? measured : tried))
            byId("colour").append(element("option", { value: key }, by.title));
    byId("colour").addEventListener("change", e => paint(e.target.value));
    byId("zoom-in").addEventListener("click", () => zoom(graph.scale * 1.25));
    byId("zoom-out").addEventListener("click", () => zoom(graph.scale / 1.25));
    byId("zoom-fit").addEventListener("click", () => fitGraph(0.1));
    paint(byId("colour").value);
    fitGraph(0.65);
    scrollToNode(0);
}

// What stands above and below: sizes, commands, and the arena over time.

function card(title, large, small, shares) {
    const total = shares?.reduce((a, b) => a + b, 0);
    return element(
        "div",
        { class: "card" },
        element("dt", {}, title),
        element(
            "dd",
            {},
            element("div", { class: "large" }, large),
            small ? element("div", { class: "quiet" }, small) : undefined,
            total
                ? element(
                      "div",
                      { class: "share" },
                      ...shares.map(s => element("span", { style: `width: ${(100 * s) / total}%` })),
                  )
                : undefined,
        ),
    );
}

function outputCard() {
    const outputs = report.values.filter(v => v.role === "output" && v.sqnr_db !== undefined);
    if (!outputs.length) return card("Worst output", "not measured", "without data");
    const worst = outputs.reduce((a, b) => (loss(b.sqnr_db) < loss(a.sqnr_db) ? b : a));
    return card(
        "Worst output",
        decibels(loss(worst.sqnr_db)),
        `${shown(worst.name)}, ${count(report.samples)} sample${report.samples === 1 ? "" : "s"}`,
    );
}

function sizeCard() {
    const { bytes_before: before, bytes_after: after } = report;
    if (before === undefined) return undefined;
    if (after === undefined) return card("File", bytes(before), "as it was read");
    return card(
        "File",
        `${bytes(before)} → ${bytes(after)}`,
        `${(before / after).toFixed(2)} times smaller`.replace(
            /^(0\.\d+|1\.00) times smaller$/,
            after > before ? "larger than before" : "as large as before",
        ),
    );
}

function startSummary() {
    byId("title").textContent = shown(report.model);
    document.title = `${shown(report.model)}: qxc report`;
    byId("subtitle").textContent =
        `qxc ${report.qxc}, written as ${report.emit} for ${report.runtime}, opset ${report.opset}`;
    const { layers_integer: integer, layers_float: float } = report;
    const arena = report.c?.arena ?? report.arena?.bytes;
    byId("summary").append(
        element(
            "dl",
            { class: "cards" },
            outputCard(),
            card(
                "Layers",
                `${integer} integer, ${float} float`,
                `${count(report.conversions)} conversions between them`,
                [integer, float],
            ),
            sizeCard(),
            card(
                "Weights",
                bytes(report.bytes_of_constants),
                report.c ? `flash with tables ${bytes(report.c.flash)}` : "as they are stored",
            ),
            report.multiply_accumulates === undefined
                ? undefined
                : card("Work", `${amount(report.multiply_accumulates)}`, "multiply-accumulates a sample"),
            arena === undefined
                ? undefined
                : card(
                      "Arena",
                      bytes(arena),
                      `${bytes(report.bytes_of_values_at_once ?? arena)} of tensors at one time`,
                  ),
        ),
    );
}

function copyButton(text) {
    const button = element("button", { type: "button" }, "Copy");
    button.addEventListener("click", async () => {
        try {
            await navigator.clipboard.writeText(text);
            button.textContent = "Copied";
        } catch {
            button.textContent = "Select it by hand";
        }
    });
    return button;
}

function startNext() {
    if (!report.next.length) {
        byId("next").remove();
        return;
    }
    byId("next").append(
        element(
            "ol",
            { class: "steps" },
            ...report.next.map(n =>
                element(
                    "li",
                    {},
                    shown(n.why),
                    element("div", { class: "command" }, element("code", {}, shown(n.command)), copyButton(n.command)),
                ),
            ),
        ),
    );
}

// Steps from left to right, addresses from the bottom up. Tensors of a layer open it.
function startArena() {
    const a = report.arena;
    if (!a || !a.tensors.length) {
        byId("arena").remove();
        return;
    }
    const W = 1000,
        H = 300,
        left = 64,
        steps = Math.max(1, a.steps.length),
        x = s => left + ((W - left - 8) * s) / steps;
    const y = offset => H - 24 - ((H - 40) * offset) / (a.bytes || 1);
    const svg = drawn("svg", {
        viewBox: `0 0 ${W} ${H}`,
        role: "img",
        "aria-label": `What is in the arena of ${count(a.bytes)} bytes at each of ${steps} steps`,
    });
    for (const t of a.tensors) {
        const v = t.value === null ? undefined : report.values[t.value],
            maker = v?.maker ?? a.steps[t.first];
        const box = drawn(
            "rect",
            {
                x: x(t.first),
                y: y(t.offset + t.bytes),
                width: Math.max(1, x(t.last + 1) - x(t.first) - 0.5),
                height: Math.max(0.5, y(t.offset) - y(t.offset + t.bytes) - 0.5),
                style: `fill: var(${v ? "--bar" : "--bar2"}); opacity: 0.8`,
            },
            drawn(
                "title",
                {},
                `${shown(t.name)}: ${count(t.bytes)} bytes at ${count(t.offset)}, steps ${t.first} to ${t.last}`,
            ),
        );
        if (maker !== null && maker !== undefined) box.addEventListener("click", () => choose(maker, true));
        svg.append(box);
    }
    for (const part of [0, 0.5, 1])
        svg.append(
            drawn("line", {
                x1: left,
                x2: W - 8,
                y1: y(a.bytes * part),
                y2: y(a.bytes * part),
                style: "stroke: var(--line)",
            }),
            drawn(
                "text",
                { x: left - 6, y: y(a.bytes * part) + 4, class: "axis", "text-anchor": "end" },
                bytes(Math.round(a.bytes * part)),
            ),
        );
    svg.append(
        drawn("text", { x: left, y: H - 6, class: "axis" }, "first step"),
        drawn("text", { x: W - 8, y: H - 6, class: "axis", "text-anchor": "end" }, `step ${steps}`),
    );
    byId("arena").append(
        element(
            "p",
            { class: "quiet" },
            "Each box is a tensor: as wide as it is needed, as high as it is large. It is darker where a result is written over what it is " +
                "made of. The second colour is working memory.",
        ),
        element(
            "div",
            { class: "over-time", tabindex: 0, role: "region", "aria-label": "Arena over time, scrolls" },
            svg,
        ),
    );
}

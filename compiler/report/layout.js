// A layered layout: each layer of the model below all that it reads; those of one row in an order with few crossings; a
// line over several rows bends around what lies between. It is plain enough to do without a library.

const NODE = { width: 168, height: 46, gap: 22, down: 30, thin: 12 };

function ranks(edges, n) {
    const rank = new Array(n).fill(0),
        left = new Array(n).fill(0),
        out = Array.from({ length: n }, () => []);
    for (const [from, to] of edges) {
        left[to]++;
        out[from].push(to);
    }
    const ready = [...left.keys()].filter(i => !left[i]);
    while (ready.length) {
        const at = ready.pop();
        for (const to of out[at]) {
            rank[to] = Math.max(rank[to], rank[at] + 1);
            if (!--left[to]) ready.push(to);
        }
    }
    return rank;
}

// Points between the rows that a long line passes, as many as can be afforded; lines beyond that go straight.
function withBends(edges, rank, n) {
    const nodes = Array.from({ length: n }, (_, i) => ({ rank: rank[i], width: NODE.width, x: 0 }));
    const lines = [],
        parts = [];
    let room = 6000;
    for (const [from, to] of edges) {
        const line = [from],
            span = rank[to] - rank[from] - 1;
        if (span > 0 && span <= room) {
            room -= span;
            for (let r = rank[from] + 1; r < rank[to]; r++)
                line.push(nodes.push({ rank: r, width: NODE.thin, x: 0 }) - 1);
        }
        line.push(to);
        for (let i = 1; i < line.length; i++) parts.push([line[i - 1], line[i]]);
        lines.push({ from, to, line });
    }
    return { nodes, lines, parts };
}

function neighbours(nodes, parts) {
    const up = nodes.map(() => []),
        down = nodes.map(() => []);
    for (const [from, to] of parts) {
        down[from].push(to);
        up[to].push(from);
    }
    return { up, down };
}

const middle = list => {
    const s = [...list].sort((a, b) => a - b),
        k = s.length >> 1;
    return s.length % 2 ? s[k] : (s[k - 1] + s[k]) / 2;
};

function orderRows(nodes, near) {
    const rows = [];
    nodes.forEach((node, i) => (rows[node.rank] ??= []).push(i));
    const number = () =>
        rows.forEach(row =>
            row.forEach((i, k) => {
                nodes[i].place = k;
            }),
        );
    number();
    for (let turn = 0; turn < 6; turn++) {
        const side = turn % 2 ? near.down : near.up;
        for (const row of turn % 2 ? [...rows].reverse() : rows) {
            for (const i of row)
                nodes[i].wish = side[i].length ? middle(side[i].map(k => nodes[k].place)) : nodes[i].place;
            row.sort((a, b) => nodes[a].wish - nodes[b].wish || nodes[a].place - nodes[b].place);
            row.forEach((i, k) => {
                nodes[i].place = k;
            });
        }
    }
    return rows;
}

// Each where its neighbours are, moved apart as far as needed.
function placeRow(nodes, row, side) {
    let edge = -Infinity,
        shift = 0;
    const wish = row.map(i => (side[i].length ? middle(side[i].map(k => nodes[k].x)) : nodes[i].x));
    row.forEach((i, k) => {
        const x = Math.max(wish[k], edge + nodes[i].width / 2);
        nodes[i].x = x;
        shift += x - wish[k];
        edge = x + nodes[i].width / 2 + NODE.gap;
    });
    shift /= row.length;
    row.forEach(i => {
        nodes[i].x -= shift;
    });
}

function layout(n, edges) {
    const { nodes, lines, parts } = withBends(edges, ranks(edges, n), n);
    const near = neighbours(nodes, parts),
        rows = orderRows(nodes, near);
    for (const row of rows) {
        let x = 0;
        for (const i of row) {
            nodes[i].x = x + nodes[i].width / 2;
            x += nodes[i].width + NODE.gap;
        }
    }
    for (let turn = 0; turn < 8; turn++) {
        const side = turn % 2 ? near.down : near.up;
        for (const row of turn % 2 ? [...rows].reverse() : rows) placeRow(nodes, row, side);
    }
    const least = Math.min(0, ...nodes.map(p => p.x - p.width / 2));
    const most = nodes.reduce((m, p) => Math.max(m, p.x + p.width / 2), 0);
    for (const p of nodes) {
        p.x += 12 - least;
        p.y = 12 + p.rank * (NODE.height + NODE.down);
    }
    return { nodes, lines, width: most - least + 24, height: 24 + rows.length * (NODE.height + NODE.down) - NODE.down };
}

"use strict";
// What the other parts share: the data, elements, and numbers as people read them. Names come from models, so they are
// only ever set as text.

const report = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const byId = id => document.getElementById(id);

// Characters that would be invisible or turn the text around are shown by their numbers.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const shown = text => String(text).replace(HIDDEN, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes))
        if (value !== undefined && value !== null) node.setAttribute(key, value);
    for (const child of children) if (child !== undefined && child !== null) node.append(child);
    return node;
}
const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const drawn = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const count = n => n.toLocaleString("en-US");
function scaled(n, units, step) {
    let i = 0;
    while (n >= step && i < units.length - 1) {
        n /= step;
        i++;
    }
    return (i && n < 100 ? n.toFixed(n < 10 ? 2 : 1) : Math.round(n)) + (units[i] ? " " + units[i] : "");
}
const bytes = n => scaled(n, ["B", "kB", "MB", "GB"], 1000);
const amount = n => scaled(n, ["", "k", "M", "G", "T"], 1000);
const real = x =>
    Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3) ? x.toExponential(2) : String(Number(x.toPrecision(4)));
const percent = x => (x === 0 ? "0 %" : x < 0.0001 ? "< 0.01 %" : (100 * x).toFixed(x < 0.01 ? 2 : 1) + " %");

// A loss as a number: what is equal is better than all.
const loss = x => (x === undefined ? undefined : x === "equal" ? Infinity : x);
const decibels = x => (x === undefined ? "" : x === Infinity || x === "equal" ? "equal" : x.toFixed(1) + " dB");

const layerTitle = l => shown(l.name || (l.outputs.length ? report.values[l.outputs[0]].name : l.op));
const weightBytes = l => l.weights.reduce((sum, w) => sum + (w.bytes ?? 0), 0);

// Where a number has a class of its own, beside its colour: five of losses, from good to bad.
const CLASSES = [
    [40, "40 dB and more"],
    [30, "30 to 40 dB"],
    [20, "20 to 30 dB"],
    [10, "10 to 20 dB"],
    [-Infinity, "below 10 dB"],
];
const lossClass = x => (x === undefined ? undefined : CLASSES.findIndex(c => x >= c[0]));

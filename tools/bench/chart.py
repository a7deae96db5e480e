"""A chart of bars as SVG: how many times as long as the first contender the others take, by model, on
a logarithmic axis. Bars to the left of 1 are of those that are faster than the first."""

import math
from xml.sax.saxutils import escape

COLORS = ("#4477aa", "#ccbb44", "#228833", "#ee6677", "#aa3377", "#66ccee")
LEFT, WIDTH, BAR, GAP, TOP = 130, 640, 11, 14, 74


def span(ratios):
    """Powers of two that hold all numbers."""
    logs = [math.log2(r) for row in ratios.values() for r in row.values() if r] + [0]
    return math.floor(min(logs) - 0.2), math.ceil(max(logs) + 0.4)


def text(x, y, words, anchor="start", size=12, color="#222"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{color}">{escape(words)}</text>')


def legend(names, colors):
    parts, x = [], LEFT
    for name, color in zip(names, colors):
        parts.append(f'<rect x="{x}" y="40" width="10" height="10" fill="{color}"/>')
        parts.append(text(x + 14, 49, name))
        x += 30 + 7 * len(name)
    return parts


def axis(low, high, place, bottom, first):
    parts = []
    for power in range(low, high + 1):
        x, strong = place(power), power == 0
        parts.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" '
                     f'stroke="{"#222" if strong else "#ddd"}" stroke-width="{1.5 if strong else 1}"/>')
        words = f"{2**power:g}" if power >= 0 else f"1/{2**-power}"
        parts.append(text(x, bottom + 16, words, "middle", color="#222" if strong else "#666"))
    parts.append(text(place(0), TOP - 12, f"{first} = 1", "middle", 11))
    return parts


def group(y, model, row, names, colors, place):
    parts, zero = [text(LEFT - 10, y + BAR * len(names) / 2 + 4, model, "end")], place(0)
    for i, (name, color) in enumerate(zip(names, colors)):
        at, value = y + i * BAR, row.get(name)
        if not value:
            parts.append(text(zero + 4, at + BAR - 2, "–", size=9, color="#999"))
            continue
        end = place(math.log2(value))
        parts.append(f'<rect x="{min(zero, end):.1f}" y="{at}" width="{abs(end - zero):.1f}" '
                     f'height="{BAR - 1}" fill="{color}"><title>{escape(f"{model}, {name}: {value:.2f}")}</title></rect>')
        side = 4 if end >= zero else -4
        parts.append(text(end + side, at + BAR - 2, f"{value:.3g}", "start" if side > 0 else "end", 9, "#444"))
    return parts


def chart(title, first, ratios):
    """ratios: {model: {contender: times as long as `first`, or None}}"""
    names = list(dict.fromkeys(n for row in ratios.values() for n in row))
    colors = [COLORS[i % len(COLORS)] for i in range(len(names))]
    low, high = span(ratios)
    step = BAR * len(names) + GAP
    bottom = TOP + step * len(ratios)

    def place(log):
        return LEFT + WIDTH * (log - low) / (high - low)
    parts = [text(LEFT, 22, title, size=15), *legend(names, colors), *axis(low, high, place, bottom, first)]
    for i, (model, row) in enumerate(ratios.items()):
        parts += group(TOP + i * step + GAP // 2, model, row, names, colors, place)
    size = f'width="{LEFT + WIDTH + 50}" height="{bottom + 30}"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")

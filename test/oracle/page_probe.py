"""Opens pages in Chromium and tells, as JSON, what can be measured of them: run by test_report_page.py with a Python that
has playwright, axe and pillow. Arguments: the browser, a folder for pictures, pages."""

import io
import json
import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import sync_playwright

VIEWS = {"wide": (1600, 1000, "light"), "dark": (1280, 900, "dark"), "phone": (390, 844, "light")}

# Boxes of the graph that overlap, texts that leave their box or lie over each other, elements that leave the page.
GEOMETRY = """() => {
  const box = e => e.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const nodes = [...document.querySelectorAll(".node")], bad = [];
  const rects = nodes.map(n => box(n.querySelector("rect")));
  const order = rects.map((r, i) => i).sort((a, b) => rects[a].top - rects[b].top);
  for (let i = 0; i < order.length; i++)
    for (let k = i + 1; k < order.length && rects[order[k]].top < rects[order[i]].bottom; k++)
      if (meet(rects[order[i]], rects[order[k]])) bad.push(`nodes ${order[i]} and ${order[k]}`);
  nodes.forEach((n, i) => {
    const texts = [...n.querySelectorAll("text")].filter(t => t.textContent).map(box);
    for (const t of texts) if (t.left < rects[i].left || t.right > rects[i].right) bad.push(`text of node ${i}`);
    for (let a = 0; a < texts.length; a++)
      for (let b = a + 1; b < texts.length; b++) if (meet(texts[a], texts[b])) bad.push(`texts in node ${i}`);
  });
  const sections = [...document.querySelectorAll(".card, #next, #graph, #layers, #arena")].filter(e => e.offsetParent).map(e => [e, box(e)]);
  for (const [a, x] of sections)
    for (const [b, y] of sections) if (a !== b && !a.contains(b) && !b.contains(a) && meet(x, y)) bad.push(`${a.id || a.className} and ${b.id || b.className}`);
  return {bad: bad.slice(0, 5), wider: document.documentElement.scrollWidth - document.documentElement.clientWidth};
}"""
# Names as they are in the data; sorted as asked; found; opened from the graph.
WORKS = """async () => {
  const rows = () => [...document.querySelectorAll("#rows > tr:not(.details)")].filter(r => !r.hidden);
  const change = (id, value, event) => { const e = document.getElementById(id); e.value = value; e.dispatchEvent(new Event(event)); };
  const out = {layers: report.layers.length, rows: rows().length};
  change("sort", "place", "change");
  out.names = rows().map(r => r.querySelector(".name").textContent);
  change("sort", "sqnr", "change");
  out.sqnr = rows().map(r => r.querySelector("[data-title=SQNR]").textContent).filter(Boolean).map(parseFloat).filter(x => !isNaN(x));
  change("search", report.layers[0].op.toLowerCase(), "input");
  out.found = rows().length;
  out.right = rows().every(r => r.textContent.toLowerCase().includes(report.layers[0].op.toLowerCase()));
  change("search", "no such layer", "input");
  out.none = rows().length;
  change("search", "", "input");
  change("filter", "float", "change");
  out.float = rows().length;
  change("filter", "all", "change");
  document.querySelectorAll(".node")[1]?.dispatchEvent(new MouseEvent("click"));
  out.chosen = document.querySelector("#rows > tr.chosen")?.id;
  out.opened = document.querySelectorAll(".details:not([hidden]) .value").length;
  out.histograms = document.querySelectorAll(".details .value svg").length;
  out.alive = document.querySelectorAll("main *").length;
  return out;
}"""


def light(png):
    image = Image.open(io.BytesIO(png)).convert("L")
    return image.size, sum(image.resize((64, 64)).getdata()) / 64**2


def counting(context, tab):
    """Lets the browser count how often each block of a script runs: such numbers are the same on any machine under any load."""
    cdp = context.new_cdp_session(tab)
    for what, how in ("Profiler.enable", {}), ("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True}), ("Performance.enable", {}):
        cdp.send(what, how)
    return cdp


def counted(cdp, page):
    scripts = cdp.send("Profiler.takePreciseCoverage")["result"]
    blocks = [r["count"] for s in scripts if s["url"] == page.as_uri() for f in s["functions"] for r in f["ranges"]]
    metrics = {m["name"]: m["value"] for m in cdp.send("Performance.getMetrics")["metrics"]}
    cdp.send("Profiler.stopPreciseCoverage")
    return {"steps": sum(blocks), "layouts": metrics["LayoutCount"] + metrics["RecalcStyleCount"], "elements": metrics["Nodes"]}


def look(browser, page, view, pictures):
    width, height, scheme = VIEWS[view]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab, said, asked = context.new_page(), [], []
    tab.on("pageerror", lambda e: said.append(str(e)))
    tab.on("request", lambda r: asked.append(r.url))
    cdp = counting(context, tab)
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    facts = {**counted(cdp, page), **tab.evaluate(GEOMETRY), "works": tab.evaluate(WORKS)}
    tab.wait_for_timeout(50)
    png = tab.screenshot(path=pictures / f"{page.stem}.{view}.png")
    facts["size"], facts["light"] = light(png)
    # axe takes its time with hundreds of rows, which are all alike.
    found = Axe().run(tab).response["violations"] if view == "dark" or facts["works"]["layers"] < 200 else []
    facts["axe"] = [f"{v['id']} ({v['impact']}): {v['nodes'][0]['html'][:120]}" for v in found]
    facts["paper"] = len(tab.pdf(format="A4")) if view == "wide" else None
    facts["said"], facts["asked"] = said, [u for u in asked if u != page.as_uri()]
    context.close()
    return facts


def main():
    program, pictures, *pages = sys.argv[1:]
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=program, args=["--no-sandbox"])
        facts = {path: {v: look(browser, pathlib.Path(path), v, pathlib.Path(pictures)) for v in VIEWS} for path in pages}
        browser.close()
    print(json.dumps(facts))


main()

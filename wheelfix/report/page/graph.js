// The dependency graph: drawn once; zoom, pan, pointing and filtering only move it or change classes.

const OWNERS = {
  wheel: "of this wheel", given: "of a given distribution", external: "of a distribution that was not given",
  host: "the machine's own", interpreter: "the interpreter", missing: "missing",
};
const WAYS = {
  missing: "missing", external: "left to a distribution that was not given", rpath: "RPATH", runpath: "RUNPATH",
  "ld-library-path": "LD_LIBRARY_PATH", "soname-loaded": "already loaded", default: "default folders", path: "by its path",
  host: "the machine's own",
};
const LABEL = "11px system-ui, sans-serif";
const LARGEST = 18; // of a label that fits its box; the smallest that can be read is 7.5 pixels on the screen

function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A file's name without the platform that every extension module has in it. */
function labelOf(node) {
  return baseName(node.path).replace(/^host:/, "").replace(/\.cpython-[^.]+(?=\.so$)/, "");
}

/** The label cut to a width: what follows .so goes first, then the middle. */
function fitting(label, width, font) {
  const whole = elided(label, width, font);
  return whole === label ? whole : elided(label.replace(/(\.so)\..*$/, "$1"), width, font);
}

/** The picture of one machine's loads with its tools, and what is told of a chosen node; `findings` as in page.js. */
function graphOf(machine, findings) {
  const { nodes, edges } = machine;
  const svg = draw("svg", { class: "graph", role: "img", tabindex: "0", "aria-label": `dependency graph, ${nodes.length} objects` });
  const stage = draw("g", { class: "stage" });
  svg.append(stage);
  const detail = make("aside", { class: "detail", "aria-live": "polite" });
  const filter = make("input", { type: "search", class: "find-objects", placeholder: "name or folder" });
  const said = make("output");
  const view = { x: 0, y: 0, scale: 1 };
  const place = layout(nodes, edges, { width: 1000, height: 520 });
  const links = edges.map((edge) => ({ edge, line: line(edge, place.places) }));
  const boxes = nodes.map((node, index) => box(node, place.places[index]));
  const near = nodes.map(() => []);
  links.forEach((link) => { near[link.edge.from].push(link); near[link.edge.to].push(link); });
  // The grave ones lie on top.
  const grave = (link) => ({ host: 0, missing: 2 }[link.edge.how] ?? 1);
  stage.style.setProperty("--ink", Math.min(0.8, Math.max(0.15, 12 / Math.sqrt(edges.length + 1) / 2)));
  // A small picture takes a small place.
  svg.style.height = `${Math.min(Math.max(place.height * 1.3 + 48, 180), 560)}px`;
  stage.append(...[...links].sort((a, b) => grave(a) - grave(b)).map((link) => link.line), ...boxes);
  let letters = 0;
  let pinned = null;
  let matches = null;

  function applied() {
    stage.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    const far = view.scale * LARGEST < 7.5;
    svg.classList.toggle("far", far);
    lettered(far ? 10.5 / view.scale : Math.min(Math.max(11, Math.round(11 / view.scale)), LARGEST), far);
    svg.dataset.scale = view.scale.toFixed(3);
  }

  /** Labels of this size, cut to their boxes; of a far picture whole, since only a few are shown. */
  function lettered(size, far) {
    stage.style.setProperty("--label", `${size}px`);
    if (letters === size) return;
    letters = size;
    boxes.forEach((one, index) => {
      const text = one.lastChild;
      text.textContent = far ? labelOf(nodes[index]) : fitting(labelOf(nodes[index]), NODE.width - 15, `${nodes[index].root ? 600 : 400} ${size}px system-ui, sans-serif`);
      text.setAttribute("y", NODE.height / 2 + size * 0.36);
    });
  }

  function fit() {
    const { width, height } = svg.getBoundingClientRect();
    view.scale = Math.min((width - 24) / place.width, (height - 24) / place.height, 1.4);
    view.x = (width - place.width * view.scale) / 2;
    view.y = (height - place.height * view.scale) / 2;
    applied();
  }

  function zoom(factor, at) {
    const box = svg.getBoundingClientRect();
    const { x, y } = at || { x: box.width / 2, y: box.height / 2 };
    const scale = Math.min(Math.max(view.scale * factor, 0.05), 6);
    view.x = x - ((x - view.x) * scale) / view.scale;
    view.y = y - ((y - view.y) * scale) / view.scale;
    view.scale = scale;
    applied();
  }

  /** Move the picture so that a node that lies outside stands in its middle. */
  function reveal({ x, y }) {
    const { width, height } = svg.getBoundingClientRect();
    const [left, top] = [view.x + x * view.scale, view.y + y * view.scale];
    const inside = left >= 0 && top >= 0 && left + NODE.width * view.scale <= width && top + NODE.height * view.scale <= height;
    if (inside) return;
    view.x = width / 2 - (x + NODE.width / 2) * view.scale;
    view.y = height / 2 - (y + NODE.height / 2) * view.scale;
    applied();
  }

  /** Show these nodes and links as they are and all others faint; with null all as they are. */
  function mark(shown, lines) {
    svg.classList.toggle("dimmed", shown !== null);
    svg.classList.toggle("crowded", shown !== null && shown.size > 60);
    boxes.forEach((one, index) => one.classList.toggle("near", shown !== null && shown.has(index)));
    links.forEach((link) => link.line.classList.toggle("near", shown !== null && lines.has(link)));
  }

  function around(index) {
    const lines = new Set(near[index]);
    const shown = new Set([index, ...near[index].flatMap((link) => [link.edge.from, link.edge.to])]);
    mark(shown, lines);
  }

  function rest() {
    boxes.forEach((one, index) => one.classList.toggle("pinned", index === pinned));
    if (pinned !== null) around(pinned);
    else if (matches !== null) mark(matches, new Set(links.filter((l) => matches.has(l.edge.from) || matches.has(l.edge.to))));
    else mark(null, null);
  }

  function pin(index) {
    pinned = index;
    detail.replaceChildren(...(index === null ? hint() : told(machine, index, near[index], pin, findings)).filter((one) => one !== null));
    rest();
    if (index !== null) reveal(place.places[index]);
  }

  function filtered() {
    const wanted = filter.value.trim().toLowerCase();
    matches = wanted ? new Set(nodes.flatMap((n, i) => (`${n.path} ${n.soname || ""}`.toLowerCase().includes(wanted) ? [i] : []))) : null;
    said.textContent = matches === null ? "" : `${matches.size} of ${nodes.length}`;
    pinned = null;
    rest();
  }

  boxes.forEach((one, index) => {
    one.addEventListener("pointerenter", () => { if (!dragging) around(index); });
    one.addEventListener("pointerleave", () => { if (!dragging) rest(); });
    one.addEventListener("click", (event) => { event.stopPropagation(); if (!moved) pin(index); });
  });
  let dragging = false;
  let moved = false;
  svg.addEventListener("pointerdown", (event) => { dragging = event.button === 0; moved = false; });
  svg.addEventListener("pointermove", (event) => {
    if (!dragging || (!moved && Math.hypot(event.movementX, event.movementY) < 2)) return;
    if (!moved) svg.setPointerCapture(event.pointerId);
    moved = true;
    view.x += event.movementX;
    view.y += event.movementY;
    applied();
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { dragging = false; });
  svg.addEventListener("click", () => { if (!moved) pin(null); });
  svg.addEventListener("wheel", (event) => {
    // A page must stay scrollable past a picture: the wheel alone zooms only where the picture has the focus.
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== svg) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), { x: event.clientX - box.left, y: event.clientY - box.top });
  }, { passive: false });
  svg.addEventListener("keydown", (event) => {
    const act = { "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: fit, Escape: () => pin(null) }[event.key];
    if (act) act();
  });
  filter.addEventListener("input", settled(filtered));
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && matches && matches.size) pin([...matches][0]);
  });
  const button = (name, label, act) => make("button", { type: "button", class: name, "aria-label": label, title: label, click: act }, { "zoom-in": "+", "zoom-out": "−", fit: "Fit", full: "1:1" }[name]);
  const tools = make("p", { class: "tools" },
    make("label", {}, "Filter ", filter), " ", said, make("span", { class: "space" }),
    button("zoom-in", "zoom in", () => zoom(1.3)), button("zoom-out", "zoom out", () => zoom(1 / 1.3)),
    button("fit", "show the whole", fit), button("full", "full size", () => zoom(1 / view.scale)));
  pin(null);
  const whole = make("div", { class: "drawn" }, tools, make("div", { class: "beside" }, svg, detail), legend(machine));
  return { whole, fit, pin };
}

/** A line from one box down to another. Where boxes stand on each other it runs between their columns, never behind one. */
function line(edge, places) {
  const [a, b] = [places[edge.from], places[edge.to]];
  const [half, middle] = [NODE.height / 2, NODE.width / 2];
  const aside = (row) => 4 + (row % 5) * 2;
  const out = a.x + NODE.width + aside(a.row);
  const into = b.x - aside(b.row);
  const [x1, y1] = a.last ? [a.x + middle, a.y + NODE.height] : [out, a.bottom];
  const [x2, y2] = b.row === 0 ? [b.x + middle, b.y] : [into, b.top];
  const first = a.last ? `M${x1} ${y1}` : `M${a.x + NODE.width} ${a.y + half}Q${out} ${a.y + half} ${out} ${a.y + half + 8}L${x1} ${y1}`;
  const last = b.row === 0 ? "" : `L${into} ${b.y + half - 8}Q${into} ${b.y + half} ${b.x} ${b.y + half}`;
  const bend = y2 > y1 ? Math.max((y2 - y1) / 2, 20) : 40;
  const path = draw("path", { class: `edge ${edge.how}`, d: `${first}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}${last}` });
  path.append(draw("title", {}, edge.ways.map((way) => way.told).join("\n")));
  return path;
}

function box(node, at) {
  return draw("g", { class: `node ${node.owner}${node.root ? " root" : ""}`, transform: `translate(${at.x} ${at.y})` },
    draw("title", {}, node.path),
    draw("rect", { width: NODE.width, height: NODE.height, rx: 3 }),
    draw("rect", { class: "mark", width: 5, height: NODE.height, rx: 2 }),
    draw("text", { x: 10 }));
}

function hint() {
  return [make("p", { class: "about" }, "Point at an object to see whom it needs and who needs it; click it for the reasons. "
    + "Drag to move. Click the picture, then turn the wheel (or press + − 0) to zoom.")];
}

/** What is known of one node: itself, whom it needs, who needs it. */
function told(machine, index, links, pin, findings) {
  const node = machine.nodes[index];
  const name = node.owner === "wheel" ? node.path : baseName(node.path).replace(/^host:/, "");
  const found = findings.count(name);
  const rows = [["is", [...new Set([node.kind, OWNERS[node.owner]])].join(", ")], ["of", node.distribution], ["SONAME", node.soname],
    ["size", node.size ? bytes(node.size) : null], ["arch", node.arch], ["RPATH", node.rpath], ["RUNPATH", node.runpath]];
  const list = (title, chosen, other) => (chosen.length ? [make("h4", {}, `${title} (${chosen.length})`), make("ul", {}, ...chosen.map((link) => {
    const target = machine.nodes[link.edge[other]];
    return make("li", { class: link.edge.how },
      make("button", { type: "button", class: "link", title: target.path, click: () => pin(link.edge[other]) }, baseName(target.path)),
      ...link.edge.ways.map((way) => make("div", { class: "way" }, `${way.told}${roots(way, link, machine)}`)));
  }))] : []);
  return [
    make("h4", { class: "path" }, node.path),
    make("dl", {}, ...rows.filter(([, value]) => value).flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)])),
    found ? make("button", { type: "button", class: "link", click: () => findings.show(name) }, `${found} finding${found === 1 ? "" : "s"}`) : null,
    ...list("Needs", links.filter((link) => link.edge.from === index), "to"),
    ...list("Needed by", links.filter((link) => link.edge.to === index && link.edge.from !== index), "from"),
  ];
}

/** Under which roots an edge comes about so, where that is not plain. */
function roots(way, link, machine) {
  if (link.edge.ways.length === 1 && way.how !== "missing") return "";
  if (way.roots.length === 1 && way.roots[0] === machine.nodes[link.edge.from].path) return "";
  const named = way.roots.slice(0, 2).join(", ");
  return ` — under ${named}${way.roots.length > 2 ? ` and ${way.roots.length - 2} more` : ""}`;
}

/** What the colours mean: those that the picture has. */
function legend(machine) {
  const counted = (all) => all.reduce((sum, key) => sum.set(key, (sum.get(key) || 0) + 1), new Map());
  const hows = counted(machine.edges.map((edge) => edge.how));
  const owners = counted(machine.nodes.map((node) => node.owner));
  const sample = (how) => draw("svg", { class: "sample", width: 28, height: 10 }, draw("path", { class: `edge ${how}`, d: "M0 5H28" }));
  const swatch = (owner) => draw("svg", { class: "sample", width: 12, height: 12 }, draw("g", { class: `node ${owner}` }, draw("rect", { class: "mark", width: 12, height: 12, rx: 2 })));
  return make("ul", { class: "legend" },
    ...Object.keys(WAYS).filter((how) => hows.has(how)).map((how) => make("li", {}, sample(how), `${WAYS[how]} (${hows.get(how)})`)),
    ...Object.keys(OWNERS).filter((owner) => owners.has(owner)).map((owner) => make("li", {}, swatch(owner), `${OWNERS[owner]} (${owners.get(owner)})`)));
}

// Device code as bars, sizes as a treemap.

const MAP = { width: 1200, height: 560, head: 17, deepest: 12 };

/** A bar for each kind and architecture. */
function deviceBars(rows) {
  const most = Math.max(...rows.map((row) => row.size), 1);
  const bars = rows.map((row) => {
    const fill = make("span", { class: `bar ${row.kind}` });
    fill.style.width = `${Math.max((100 * row.size) / most, 0.3)}%`;
    const where = row.objects.map(([path, size]) => `${path}: ${bytes(size)}`).join("\n");
    return make("tr", { title: where },
      make("th", { scope: "row" }, row.architecture), make("td", {}, `${row.kind}${row.compressed ? ", compressed" : ""}`),
      make("td", { class: "track" }, fill), make("td", { class: "number" }, bytes(row.size)),
      make("td", { class: "number" }, percent(row.share)), make("td", { class: "number" }, `${row.entries}`),
      make("td", { class: "number" }, `${row.objects.length}`));
  });
  return make("div", { class: "scroll" }, make("table", { class: "device" },
    make("thead", {}, make("tr", {}, ...["Architecture", "Kind", "", "Size", "Of the wheel", "Entries", "Objects"].map((head, column) => make("th", { class: column > 2 ? "number" : null }, head)))),
    make("tbody", {}, ...bars)));
}

/** The files of a wheel as a tree of {name, size, packed, files, kind, children}. */
function fileTree({ files, rest }) {
  const root = { name: "", size: 0, packed: 0, files: 0, kind: "folder", children: new Map() };
  const add = (path, size, packed, count, kind, name) => {
    const steps = path.split("/");
    const folders = steps.slice(0, -1).slice(0, MAP.deepest);
    let at = root;
    for (const step of folders) {
      sum(at, size, packed, count);
      if (!at.children.has(`${step}/`)) at.children.set(`${step}/`, { name: step, size: 0, packed: 0, files: 0, kind: "folder", children: new Map(), above: at });
      at = at.children.get(`${step}/`);
    }
    sum(at, size, packed, count);
    const last = name || steps.slice(folders.length).join("/");
    at.children.set(last, { name: last, size, packed, files: count, kind, children: new Map(), above: at });
  };
  for (const [path, size, packed, kind] of files) add(path, size, packed, 1, kind);
  for (const [folder, count, size, packed] of rest) add(folder ? `${folder}/` : "", size, packed, count, "other", `${count} small files`);
  return root;
}

function sum(node, size, packed, count) {
  node.size += size;
  node.packed += packed;
  node.files += count;
}

/** The treemap with the way back above it. */
function treemap(sizes) {
  const root = fileTree(sizes);
  const svg = draw("svg", { class: "treemap", viewBox: `0 0 ${MAP.width} ${MAP.height}`, role: "img", "aria-label": "sizes of the files" });
  const way = make("p", { class: "way-back" });
  const open = (folder) => {
    const above = [];
    for (let at = folder; at; at = at.above) above.unshift(at);
    way.replaceChildren(...above.flatMap((at, index) => {
      const name = at.name || "the wheel";
      return [index ? " / " : "", at === folder ? make("b", {}, name) : make("button", { type: "button", class: "link", click: () => open(at) }, name)];
    }), ` ${bytes(folder.size)} installed, ${bytes(folder.packed)} in the archive, ${folder.files} file${folder.files === 1 ? "" : "s"}`);
    svg.replaceChildren(...tiles(folder, { x: 0, y: 0, width: MAP.width, height: MAP.height }, root.size, open, 0));
  };
  open(root);
  const legend = make("ul", { class: "legend" }, ...[["elf", "ELF objects"], ["python", "Python"], ["other", "other files"]].map(([kind, name]) => make("li", {},
    draw("svg", { class: "sample", width: 12, height: 12 }, draw("rect", { class: `tile ${kind}`, width: 12, height: 12, rx: 2 })), name)));
  return make("div", {}, way, svg, legend);
}

/** The rectangles of a folder's children, and of theirs where there is room. */
function tiles(folder, room, whole, open, level) {
  const children = [...folder.children.values()].filter((child) => child.size > 0).sort((a, b) => b.size - a.size);
  return squarified(children, room).flatMap(([child, at]) => {
    if (at.width < 2 || at.height < 2) return [];
    const inner = { x: at.x + 0.75, y: at.y + 0.75, width: at.width - 1.5, height: at.height - 1.5 };
    const isFolder = child.kind === "folder";
    const label = elided(child.name, inner.width - 8, LABEL);
    const fits = inner.height > 15 && label;
    const about = `${pathOf(child)}\n${bytes(child.size)} installed (${percent(child.size / Math.max(whole, 1))} of the wheel), ${bytes(child.packed)} in the archive`;
    const tile = draw("g", { class: isFolder ? "folder" : "file" }, draw("title", {}, about),
      draw("rect", { class: `tile ${child.kind} level-${Math.min(level, 3)}`, x: inner.x, y: inner.y, width: Math.max(inner.width, 0.5), height: Math.max(inner.height, 0.5) }));
    if (fits) tile.append(draw("text", { x: inner.x + 4, y: inner.y + 12 }, label));
    if (fits && !isFolder && inner.height > 32 && inner.width > 54) tile.append(draw("text", { class: "size", x: inner.x + 4, y: inner.y + 25 }, bytes(child.size)));
    if (!isFolder) return [tile];
    tile.addEventListener("click", () => open(child));
    const head = fits ? MAP.head : 2;
    const below = { x: inner.x + 2, y: inner.y + head, width: inner.width - 4, height: inner.height - head - 2 };
    return below.width > 8 && below.height > 8 ? [tile, ...tiles(child, below, whole, open, level + 1)] : [tile];
  });
}

function pathOf(node) {
  const names = [];
  for (let at = node; at && at.name; at = at.above) names.unshift(at.name);
  return names.join("/");
}

/** Squarified treemap (Bruls, Huizing, van Wijk 2000): rows along the shorter side, as square as they get. */
function squarified(children, room) {
  const total = children.reduce((all, child) => all + child.size, 0);
  const scale = total ? (room.width * room.height) / total : 0;
  const placed = [];
  let left = { ...room };
  let index = 0;
  while (index < children.length) {
    const side = Math.max(Math.min(left.width, left.height), 0.01);
    let area = 0;
    let end = index;
    let worst = Infinity;
    while (end < children.length) {
      const grown = area + children[end].size * scale;
      const thick = grown / side;
      const ratio = worstOf(children, index, end, scale, thick);
      if (ratio > worst) break;
      [worst, area, end] = [ratio, grown, end + 1];
    }
    const thick = area / side;
    let along = 0;
    for (; index < end; index += 1) {
      const length = (children[index].size * scale) / Math.max(thick, 1e-9);
      placed.push([children[index], left.width >= left.height
        ? { x: left.x, y: left.y + along, width: thick, height: length }
        : { x: left.x + along, y: left.y, width: length, height: thick }]);
      along += length;
    }
    left = left.width >= left.height
      ? { x: left.x + thick, y: left.y, width: left.width - thick, height: left.height }
      : { x: left.x, y: left.y + thick, width: left.width, height: left.height - thick };
  }
  return placed;
}

/** The worst ratio of sides in a row of this thickness: that of its largest or of its smallest. */
function worstOf(children, first, last, scale, thick) {
  return Math.max(...[children[first], children[last]].map((child) => {
    const length = (child.size * scale) / Math.max(thick, 1e-9);
    return Math.max(length / thick, thick / Math.max(length, 1e-9));
  }));
}

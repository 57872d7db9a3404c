// Where the nodes of a graph stand: in layers from top to bottom, so that whoever needs stands above what it needs.
// Boxes are wide and low, and chains of libraries long: layers from left to right would make a ribbon.

const NODE = { width: 190, height: 24, row: 31, column: 206, layer: 64 };

/**
 * Places of all nodes, and the width and height that they take. A place is {x, y} of the left upper corner, the row in its
 * layer, whether nothing of the layer stands below, and the upper and lower side of the layer.
 */
function layout(nodes, edges, view) {
  const next = nodes.map(() => []);
  const before = nodes.map(() => []);
  for (const { from, to } of edges) {
    if (from === to) continue;
    next[from].push(to);
    before[to].push(from);
  }
  const layers = layered(nodes, next);
  ordered(layers, next, before);
  const most = columnsFor(layers, view);
  const wide = Math.min(most, Math.max(...layers.map((layer) => layer.length), 1)) * NODE.column;
  const places = [];
  let y = 0;
  layers.forEach((layer, number) => {
    const rows = Math.ceil(layer.length / most);
    const columns = Math.ceil(layer.length / rows);
    // What is neither first nor last stands aside by turns, so that lines between distant layers pass beside it.
    const inside = number > 0 && number < layers.length - 1 && layers.length > 3;
    const left = (wide - columns * NODE.column) * (inside ? [0.25, 0.75][number % 2] : 0.5);
    const bottom = y + (rows - 1) * NODE.row + NODE.height;
    layer.forEach((node, index) => {
      const [column, row] = [Math.floor(index / rows), index % rows];
      const last = row === rows - 1 || index === layer.length - 1;
      places[node] = { x: left + column * NODE.column, y: y + row * NODE.row, row, last, top: y, bottom };
    });
    y += rows * NODE.row + NODE.layer;
  });
  return { places, width: wide - (NODE.column - NODE.width), height: y - NODE.layer - (NODE.row - NODE.height) };
}

/** The nodes of each layer: as far down as the longest chain that leads there; the machine's own libraries last. */
function layered(nodes, next) {
  const order = []; // in which each node comes after all that it needs
  const circle = new Set(); // edges that close a circle, as "from to"
  const state = new Uint8Array(nodes.length);
  nodes.forEach((_, start) => {
    const walk = state[start] ? [] : [[start, 0]];
    while (walk.length) {
      const top = walk[walk.length - 1];
      const [node, index] = top;
      state[node] = 1;
      if (index === next[node].length) {
        state[node] = 2;
        order.push(node);
        walk.pop();
        continue;
      }
      top[1] += 1;
      const target = next[node][index];
      if (state[target] === 1) circle.add(`${node} ${target}`);
      else if (state[target] === 0) walk.push([target, 0]);
    }
  });
  const own = (node) => nodes[node].owner !== "host" && nodes[node].owner !== "interpreter";
  const depth = new Array(nodes.length).fill(0);
  for (const node of order.reverse()) {
    for (const target of next[node]) {
      if (own(target) && !circle.has(`${node} ${target}`)) depth[target] = Math.max(depth[target], depth[node] + 1);
    }
  }
  const last = Math.max(-1, ...nodes.map((_, node) => (own(node) ? depth[node] : -1))) + 1;
  const layers = Array.from({ length: last + 1 }, () => []);
  nodes.forEach((_, node) => layers[own(node) ? depth[node] : last].push(node));
  return layers.filter((layer) => layer.length);
}

/** Each layer in an order in which neighbours stand near each other: a node at the mean of its neighbours, swept to and fro. */
function ordered(layers, next, before) {
  const at = [];
  const settle = (layer) => layer.forEach((node, index) => { at[node] = (index + 0.5) / layer.length; });
  layers.forEach(settle);
  for (let sweep = 0; sweep < 8; sweep += 1) {
    const forth = sweep % 2 === 0;
    const links = forth ? before : next;
    for (const layer of forth ? layers : [...layers].reverse()) {
      const mean = new Map(layer.map((node) => {
        const near = links[node].filter((other) => at[other] !== undefined);
        return [node, near.length ? near.reduce((sum, other) => sum + at[other], 0) / near.length : at[node]];
      }));
      layer.sort((a, b) => mean.get(a) - mean.get(b) || a - b);
      settle(layer);
    }
  }
}

/** How many columns a layer may have so that the whole is as large as it can be in a view of {width, height}. */
function columnsFor(layers, view) {
  const most = Math.max(...layers.map((layer) => layer.length), 1);
  let best = { columns: most, scale: 0 };
  // A small layer is one row: where boxes stand on each other, it takes a look to see whose a line is.
  for (let columns = Math.min(5, most); columns <= most; columns += 1) {
    const height = layers.reduce((sum, layer) => sum + Math.ceil(layer.length / columns) * NODE.row + NODE.layer, -NODE.layer);
    const scale = Math.min(view.width / (columns * NODE.column), view.height / height);
    if (scale > best.scale) best = { columns, scale };
  }
  return best.columns;
}

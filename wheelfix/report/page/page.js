// What the page does when it is there: one wheel at a time, its pictures when it is first shown.

const drawn = new Map();

/** Everything about one wheel that a script draws. */
async function pictures(number, room) {
  const overview = await unpacked(`overview-${number}`);
  const { machines, device, sizes } = overview;
  const graphs = [];
  const findings = findingsOf(room.closest("section"));
  if (machines.some((machine) => machine.nodes.length)) {
    const boards = machines.map((machine) => {
      const graph = graphOf(machine, findings);
      graphs.push(graph);
      return graph.whole;
    });
    room.append(part("Dependencies", "Who loads whom: above what is opened, below it what it needs. The colour of a line tells how the loader found it.", ...tabs(machines, boards, (index) => graphs[index].fit())));
  }
  const table = make("div", { class: "table" }, make("p", { class: "about" }, "Reading the symbols …"));
  if (machines.length) room.append(part("Symbols", "Who supplies each symbol that the loader looks up, on the oldest machine that the tag promises.", table));
  if (device.length) room.append(part("Device code", "What the code for each GPU architecture takes of the files.", deviceBars(device)));
  if (sizes.files.length) room.append(part("Sizes", "Files by their installed size. Click a folder to go into it.", treemap(sizes)));
  graphs.forEach((graph) => graph.fit());
  room.closest("section").querySelector("header").after(ways(room.closest("section")));
  return { graphs, table, machines };
}

/** A row of buttons that leads to the parts of the page; it stays in sight. */
function ways(section) {
  const parts = [...section.querySelectorAll(".findings, .part")];
  return make("nav", { class: "parts", "aria-label": "parts of the report" }, ...parts.map((one) => make("button",
    { type: "button", click: () => one.scrollIntoView() }, one.querySelector("h3").textContent)));
}

async function symbolsOf(number, table, machines) {
  const packed = await unpacked(`symbols-${number}`);
  table.replaceChildren(...tabs(machines, packed.map(symbolTable), () => {}));
  table.dataset.ready = Math.round(performance.now());
}

/** One board for each machine; with several a row of buttons chooses. */
function tabs(machines, boards, opened) {
  if (boards.length < 2) return boards;
  const show = (index) => {
    boards.forEach((board, at) => { board.hidden = at !== index; });
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === index));
    opened(index);
  };
  const buttons = machines.map((machine, index) => make("button", { type: "button", click: () => show(index) }, machine.tag));
  boards.forEach((board, at) => { board.hidden = at !== 0; });
  buttons.forEach((button, at) => button.setAttribute("aria-pressed", at === 0));
  return [make("p", { class: "tabs" }, ...buttons), ...boards];
}

/** Show one wheel; the others wait. */
async function show(number) {
  document.querySelectorAll("section.wheel").forEach((section, at) => { section.hidden = at !== number; });
  document.querySelectorAll("nav.wheels a").forEach((link, at) => link.toggleAttribute("aria-current", at === number));
  const room = document.querySelector(`#wheel-${number} .pictures`);
  if (room === null || drawn.has(number)) return;
  drawn.set(number, null);
  const done = await pictures(number, room);
  drawn.set(number, done);
  document.documentElement.dataset.drawn = Math.round(performance.now());
  // The pictures are there to be used; the table comes when they have been painted.
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  if (done.machines.length) await symbolsOf(number, done.table, done.machines);
}

/** Hide the findings that do not hold what was typed. */
function filterFindings(board) {
  const field = board.querySelector(".find-findings");
  const said = board.querySelector("output");
  const all = [...board.querySelectorAll("article.finding")];
  const texts = all.map((one) => `${one.closest(".rule").querySelector("summary").textContent} ${one.textContent}`.toLowerCase());
  board.querySelector(".tools").hidden = false;
  field.addEventListener("input", settled(() => {
    const wanted = field.value.trim().toLowerCase();
    let found = 0;
    all.forEach((one, index) => {
      one.hidden = !texts[index].includes(wanted);
      found += one.hidden ? 0 : 1;
    });
    for (const rule of board.querySelectorAll(".rule")) {
      rule.hidden = rule.querySelector("article:not([hidden])") === null;
      if (wanted && !rule.hidden) rule.open = true;
    }
    said.textContent = wanted ? `${found} of ${all.length}` : "";
  }));
}

/** How many findings name a member or a library, and a way to them. */
function findingsOf(section) {
  const field = section.querySelector(".find-findings");
  const named = [...section.querySelectorAll("article.finding")].map((one) => [...one.querySelectorAll(":scope > dl code")].map((code) => code.textContent));
  return {
    count: (name) => named.filter((names) => names.includes(name)).length,
    show: (name) => {
      field.value = name;
      field.dispatchEvent(new Event("input"));
      section.querySelector(".findings").scrollIntoView();
    },
  };
}

function asked() {
  const number = Number((location.hash.match(/^#wheel-(\d+)$/) || [])[1]);
  if (document.getElementById(`wheel-${number}`)) return number;
  const first = document.querySelector("section.wheel > header.fail, section.wheel > header.unreadable");
  return first ? [...document.querySelectorAll("section.wheel")].indexOf(first.parentElement) : 0;
}

document.querySelectorAll(".findings").forEach(filterFindings);
addEventListener("hashchange", () => show(asked()));
addEventListener("resize", settled(() => {
  for (const done of drawn.values()) if (done) done.graphs.forEach((graph) => graph.fit());
}, 200));
show(asked()).then(() => { document.documentElement.dataset.ready = Math.round(performance.now()); });

// The table of symbols: who supplies what. Hundreds of thousands are searched, a few hundred shown.

const FIRST_ROWS = 200;
const STATUSES = {
  missing: "missing", undecided: "undecided", bound: "bound", "weak-unbound": "weak, unbound", unreferenced: "never looked up",
};

/** The table of one machine: {names, texts, groups, readable} of html_symbols.py. */
function symbolTable(packed) {
  const names = packed.names ? packed.names.split("\n") : [];
  const lower = names.map((name) => name.toLowerCase());
  const groups = packed.groups.map(([object, version, weak, status, provider, unless, also, roots, steps]) => {
    let at = 0;
    const text = (place) => (place === null ? null : packed.texts[place]);
    return {
      object: text(object), version: text(version), weak: weak === 1, status, provider: text(provider), also: text(also),
      unless: unless.map(text), roots: roots.map(text), symbols: steps.map((step) => (at += step)),
    };
  }).sort((a, b) => graveness(a) - graveness(b));
  const total = groups.reduce((sum, group) => sum + group.symbols.length, 0);
  const search = make("input", { type: "search", class: "find-symbols", placeholder: "symbol, mangled or like std::string" });
  const objects = choice("of-object", "every object", groups.map((group) => group.object));
  const providers = choice("of-provider", "every provider", groups.map((group) => group.provider).filter((p) => p !== null));
  const present = Object.keys(STATUSES).filter((status) => groups.some((group) => group.status === status));
  const status = make("select", { class: "of-status" }, make("option", { value: "" }, "every status"), ...present.map((s) => make("option", { value: s }, STATUSES[s])));
  const said = make("output");
  const body = make("tbody");
  const more = make("button", { type: "button", class: "more" }, "Show more");
  let most = FIRST_ROWS;

  function shown() {
    const fits = matcher(search.value.trim(), names, lower, packed.readable);
    const rows = [];
    let found = 0;
    for (const group of groups) {
      if (objects.value && group.object !== objects.value) continue;
      if (providers.value && group.provider !== providers.value) continue;
      if (status.value && group.status !== status.value) continue;
      for (const symbol of group.symbols) {
        if (!fits(symbol)) continue;
        found += 1;
        if (rows.length < most) rows.push(row(group, names[symbol], packed.readable[symbol]));
      }
    }
    body.replaceChildren(...rows);
    said.textContent = `${found.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    more.hidden = found <= rows.length;
  }

  const anew = () => { most = FIRST_ROWS; shown(); };
  search.addEventListener("input", settled(anew));
  for (const one of [objects, providers, status]) one.addEventListener("change", anew);
  more.addEventListener("click", () => { most += 1000; shown(); });
  shown();
  return make("div", {},
    make("p", { class: "tools" }, make("label", {}, "Symbol ", search), " ", objects, " ", providers, " ", status, " ", said),
    make("div", { class: "scroll" }, make("table", { class: "symbols" },
      make("thead", {}, make("tr", {}, ...["Symbol", "Version", "Wanted by", "Supplied by", "Status"].map((head) => make("th", {}, head)))), body)),
    more);
}

/** What stops an import comes first; a weak symbol stops none. */
function graveness(group) {
  const open = group.status === "missing" || group.status === "undecided";
  return open && group.weak ? 2.5 : Object.keys(STATUSES).indexOf(group.status);
}

function choice(name, all, values) {
  const sorted = [...new Set(values)].sort();
  return make("select", { class: name }, make("option", { value: "" }, all), ...sorted.map((value) => make("option", { value }, value)));
}

/**
 * Whether the symbol at a place fits. "std::runtime_error" is found in mangled names by its parts, in order: the Itanium
 * C++ ABI writes a name after its length (13runtime_error), and std as St.
 */
function matcher(wanted, names, lower, readable) {
  if (!wanted) return () => true;
  const plain = wanted.toLowerCase();
  const words = (place) => (readable[place] || "").toLowerCase();
  if (!wanted.includes("::")) return (place) => lower[place].includes(plain) || words(place).includes(plain);
  const parts = wanted.split(/[^A-Za-z0-9_]+/).filter(Boolean);
  const last = parts.length - 1;
  return (place) => {
    const name = names[place];
    if (words(place).includes(plain)) return true;
    if (!name.startsWith("_Z")) return false;
    let from = 2;
    return parts.every((word, index) => {
      // The last word may be half typed: its length is not known then.
      const written = word === "std" ? "St" : index === last ? word : `${word.length}${word}`;
      const at = name.indexOf(written, from);
      from = at + written.length;
      return at >= 0;
    });
  };
}

function row(group, name, words) {
  const beside = words ? make("div", { class: "words" }, words) : null;
  const under = group.roots.length === 1 && group.roots[0] === group.object ? null
    : make("div", { class: "words", title: group.roots.join("\n") }, group.roots.length === 1 ? `under ${group.roots[0]}` : `under ${group.roots.length} roots`);
  const notes = [];
  if (group.unless.length) {
    const rest = group.unless.length > 4 ? ` and ${group.unless.length - 3} more` : "";
    const named = rest ? group.unless.slice(0, 3) : group.unless;
    notes.push([`${group.status === "bound" ? "unless in" : "perhaps in"} ${named.join(", ")}${rest}`, group.unless.join("\n")]);
  }
  if (group.also) notes.push([`data relocations: ${group.also}`, null]);
  return make("tr", { class: group.status },
    make("td", {}, make("code", {}, name), beside), make("td", {}, group.version || ""), make("td", {}, group.object, under),
    make("td", {}, group.provider || "", ...notes.map(([note, title]) => make("div", { class: "words", title }, note))),
    make("td", {}, make("span", { class: `status ${group.status}` }, STATUSES[group.status]), group.weak && group.status !== "weak-unbound" ? make("div", { class: "words" }, "weak") : null));
}

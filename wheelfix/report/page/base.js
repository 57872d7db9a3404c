// Making elements. Whatever comes out of a wheel is set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are functions listen to the event of that name. */
function make(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An SVG element. */
function draw(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** The data of one block of the page: JSON, deflated, in base64. */
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const pen = document.createElement("canvas").getContext("2d");

/** A text cut in its middle so that it fits: the ends of file names tell more than their middles. */
function elided(text, width, font) {
  pen.font = font;
  if (pen.measureText(text).width <= width) return text;
  let [few, many] = [0, text.length];
  while (few < many) {
    const kept = Math.ceil((few + many) / 2);
    if (pen.measureText(shortened(text, kept)).width <= width) few = kept;
    else many = kept - 1;
  }
  return few < 3 ? "" : shortened(text, few);
}

function shortened(text, kept) {
  const tail = Math.floor(kept * 0.4);
  return `${text.slice(0, kept - tail)}…${text.slice(text.length - tail)}`;
}

/** Decimal megabytes, as the package index counts. */
function bytes(size) {
  return size >= 1e5 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e3).toFixed(1)} kB`;
}

function percent(share) {
  return share > 0 && share < 0.0005 ? "<0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** A call once the caller has been quiet for a moment. */
function settled(call, wait = 80) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(call, wait);
  };
}

/** A heading with a line below it that says what is shown. */
function part(title, about, ...children) {
  return make("div", { class: "part" }, make("h3", {}, title), make("p", { class: "about" }, about), ...children);
}

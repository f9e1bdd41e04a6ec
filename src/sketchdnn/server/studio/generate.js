// The view "Generate": conditions, a seed, and the sketches as cards. Files with several sketches open here too.

import { stream } from "./api.js";
import { attempt, button, byId, h, iconButton, icon, plural, showMessage } from "./dom.js";
import { openExport } from "./files.js";
import { conditionsOf, writeLink } from "./permalink.js";
import { picture } from "./picture.js";
import { describe, normalized } from "./sketch.js";
import { store } from "./store.js";
import { choosePicture } from "./tracing.js";
import { playTrajectory } from "./trajectory.js";

const form = byId("conditions");
const grid = byId("cards");

/** What is in the grid: {title, nameOf(index), results: [{index, sketch, …}], request} */
let shown = { title: "", nameOf: String, results: [], request: null };
let running = null;
const PHONE = "(max-width: 760px)";

export const results = () => shown.results;

export function setUpGenerate() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    generate();
  });
  byId("reroll").addEventListener("click", () => {
    form.elements.seed.value = Math.floor(Math.random() * 2 ** 31);
    generate();
  });
  byId("cancel-generate").addEventListener("click", cancel);
  byId("export-all").addEventListener("click", () => openExport(exportable(), "all"));
  byId("clear-conditions").addEventListener("click", () => {
    const { seed } = form.elements;
    const value = seed.value;
    form.reset();
    seed.value = value;
  });
}

/** Generate what the form asks for. */
export async function generate() {
  if (!form.reportValidity()) return;
  const request = conditionsOf(form);
  writeLink(request);
  store.setView("generate");
  await run("/generate", request, `Seed ${request.seed}`, (index) => `Sketch ${index} of seed ${request.seed}`);
}

/** Variations of a sketch: "more like this". */
async function vary(sketch, name) {
  store.setView("generate");
  const { count, quality, steps } = conditionsOf(form);
  const seed = Math.floor(Math.random() * 2 ** 31);
  const request = { init_sketch: sketch, count: Math.min(count, 8), seed, strength: 0.3, ...(quality ? { quality } : {}), ...(steps ? { steps } : {}) };
  await run("/variations", request, `Variations of ${lower(name)}`, (index) => `Variation ${index} of ${lower(name)}`);
}

/** Put sketches of a file into the grid. */
export function showFile(name, sketches) {
  cancel();
  shown = { title: name, nameOf: (index) => `Sketch ${index + 1} of ${name}`, results: [], request: null };
  grid.replaceChildren();
  sketches.forEach((sketch, index) => addCard({ index, sketch: normalized(sketch) }));
  showState();
  store.setView("generate");
}

export function cancel() {
  running?.abort();
}

async function run(path, request, title, nameOf) {
  cancel();
  const own = new AbortController();
  running = own;
  shown = { title, nameOf, results: [], request };
  grid.replaceChildren(...Array.from({ length: request.count }, () => h("li", { class: "card waiting", "aria-hidden": "true" })));
  showState(0);
  if (matchMedia(PHONE).matches) byId("results").scrollIntoView();
  const on = {
    job: ({ position }) => position > 0 && showState(0, `Waiting: ${plural(position, "request")} ahead`),
    progress: ({ done }) => own === running && showState(done),
    sketch: (result) => own === running && addCard({ ...result, sketch: normalized(result.sketch) }),
  };
  const done = await attempt(() => stream(path, request, on, own.signal));
  if (own !== running) return;
  running = null;
  for (const waiting of grid.querySelectorAll(".waiting")) waiting.remove();
  showState();
  if (done) showMessage(`${plural(shown.results.length, "sketch", "sketches")} in ${done.seconds.toFixed(1)} s.`);
  else if (own.signal.aborted) showMessage(`Canceled; ${shown.results.length} of ${request.count} sketches are ready.`);
}

/** The line above the cards, and which of its buttons there are. `done` is the share of the work, if any is under way. */
function showState(done, words) {
  const isBusy = running !== null;
  const count = shown.results.length;
  byId("cards-title").textContent = shown.title || "Sketches";
  byId("cards-count").textContent = words ?? (isBusy ? `${count} of ${shown.request.count}` : count ? plural(count, "result") : "");
  byId("generate-progress").hidden = !isBusy;
  byId("generate-progress").value = done ?? 0;
  byId("cancel-generate").hidden = !isBusy;
  byId("export-all").disabled = !count;
  byId("cards-empty").hidden = isBusy || count > 0;
  grid.setAttribute("aria-busy", String(isBusy));
}

const lower = (name) => name.charAt(0).toLowerCase() + name.slice(1);

const exportable = () => shown.results.map((result) => ({ sketch: result.sketch, name: `sketch_${String(result.index).padStart(4, "0")}` }));

function addCard(result) {
  shown.results.push(result);
  const { request } = shown;
  const name = shown.nameOf(result.index);
  const notes = [result.shortfall, result.repair?.warning].filter(Boolean);
  const isGenerated = request && !request.init_sketch;
  const card = h(
    "li",
    { class: "card", "data-index": result.index },
    h(
      "button",
      { type: "button", class: "card-open", "aria-label": `Open ${lower(name)}: ${describe(result.sketch)}`, onclick: () => openSketch(result.sketch, name) },
      picture(result.sketch, { label: "" }),
    ),
    h(
      "div",
      { class: "card-foot" },
      h("span", { class: "card-name" }, `${result.index}`),
      h("span", { class: "card-text", title: describe(result.sketch) }, describe(result.sketch)),
      notes.length ? h("span", { class: "card-note", title: notes.join("\n"), role: "img", "aria-label": notes.join(" ") }, icon("warning", 16)) : null,
      isGenerated ? iconButton("film", `Show how ${lower(name)} was made`, () => playTrajectory({ ...request, index: result.index }, lower(name)), { class: "icon-button small" }) : null,
      iconButton("variations", `More like ${lower(name)}`, () => vary(result.sketch, name), { class: "icon-button small" }),
    ),
  );
  const waiting = grid.querySelector(".waiting");
  if (waiting) waiting.replaceWith(card);
  else grid.append(card);
  showState(byId("generate-progress").value);
}

function openSketch(sketch, name) {
  store.open(sketch, name);
  store.setView("sketch");
  byId("canvas").focus({ preventScroll: true });
}

/** The message in an empty grid. */
export function emptyMessage() {
  return [
    h("p", {}, "No sketches yet."),
    h("p", { class: "muted" }, "Choose conditions and press Generate, open a DXF, SVG, FCStd or JSON file, trace a picture of a drawing, or draw your own."),
    h("div", { class: "row" }, button("Draw a sketch", () => store.setView("sketch")), button("Trace a picture", choosePicture)),
  ];
}

// The panels "Complete", "Constrain" and "Repair": suggestions as tiles; hovering shows one on the canvas, a click accepts it.

import { post, stream } from "./api.js";
import { attempt, byId, h, hideMessage, iconButton, plural, refill, showMessage } from "./dom.js";
import { boxOf, picture } from "./picture.js";
import { normalized, select } from "./sketch.js";
import { store } from "./store.js";

const COUNT = 8;
let running = null;
/** The part that the tiles of "Complete" belong to, and all that were shown for it. */
let completion = { part: null, shown: [] };

export function setUpSuggestions() {
  byId("complete-form").addEventListener("submit", (event) => {
    event.preventDefault();
    complete();
  });
  byId("something-else").addEventListener("click", () => complete({ unlike: completion.shown }));
  byId("cancel-complete").addEventListener("click", () => running?.abort());
  byId("constrain-form").addEventListener("submit", (event) => {
    event.preventDefault();
    constrain();
  });
  byId("repair-form").addEventListener("submit", (event) => {
    event.preventDefault();
    repair();
  });
  store.on("selection committed", showPart);
  store.on("committed opened", clear);
  showPart();
}

function clear() {
  running?.abort();
  for (const id of ["completions", "alternatives", "repair-result"]) byId(id).replaceChildren();
  for (const id of ["complete-note", "constrain-note"]) byId(id).textContent = "";
  byId("something-else").disabled = true;
  completion = { part: null, shown: [] };
}

function showPart() {
  const chosen = store.selectedPrimitives().length;
  const all = store.sketch.primitives.length;
  byId("complete-part").textContent = chosen && chosen < all ? `Keeps the ${plural(chosen, "selected primitive")}; the other ${all - chosen} go.` : `Keeps the whole sketch, ${plural(all, "primitive")}.`;
}

/** The part to complete: what is selected, or all. */
function partOf() {
  const chosen = store.selectedPrimitives();
  return chosen.length ? select(store.sketch, chosen) : store.sketch;
}

const option = (name) => byId("complete-form").elements[name].value.trim();

/** Ask for completions. `like` is a suggestion to vary, `unlike` are those not to repeat. */
export async function complete({ like, unlike } = {}) {
  const isNew = !like && !unlike;
  const part = isNew ? partOf() : completion.part;
  if (!part?.primitives.length) {
    showMessage("There is nothing to complete: draw or open a sketch first.", "error");
    return;
  }
  hideMessage();
  running?.abort();
  const own = new AbortController();
  running = own;
  const form = byId("complete-form").elements;
  const request = { part, count: COUNT, seed: Number(option("seed")) || 0, goal: option("goal") || null, closed: form.closed.checked };
  if (option("kinds")) request.kinds = option("kinds");
  if (form.round.checked) request.round = "auto";
  if (like) Object.assign(request, { like });
  if (unlike?.length) Object.assign(request, { unlike, seed: request.seed + unlike.length });
  if (document.documentElement.dataset.steps) request.steps = Number(document.documentElement.dataset.steps);
  const tiles = byId("completions");
  tiles.replaceChildren(...Array.from({ length: COUNT }, () => h("li", { class: "tile waiting", "aria-hidden": "true" })));
  setBusy(true);
  const found = [];
  const on = {
    progress: ({ done }) => (byId("complete-progress").value = done),
    sketch: (result) => found.push({ ...result, sketch: normalized(result.sketch) }),
  };
  const done = await attempt(() => stream("/complete", request, on, own.signal));
  if (running !== own) return;
  running = null;
  setBusy(false);
  if (!done) {
    tiles.replaceChildren();
    return;
  }
  completion = { part, shown: [...(isNew ? [] : completion.shown), ...found.map((result) => result.sketch)] };
  tiles.replaceChildren(...found.map(completionTile));
  byId("something-else").disabled = false;
  byId("complete-note").textContent = `${plural(found.length, "suggestion")} in ${done.seconds.toFixed(1)} s, the best first.`;
}

function setBusy(isBusy) {
  byId("complete-progress").hidden = !isBusy;
  byId("complete-progress").value = 0;
  byId("cancel-complete").hidden = !isBusy;
  byId("completions").setAttribute("aria-busy", String(isBusy));
  byId("complete-note").textContent = "";
}

function completionTile(result, number) {
  const { sketch, num_given: numGiven } = result;
  const added = sketch.primitives.length - numGiven;
  const state = result.shortfall ?? (result.profile?.is_extrudable ? "closed" : "open");
  const name = `Suggestion ${number + 1}: ${added} added, ${state}`;
  return tile({
    picture: picture(sketch, { numGiven, label: "" }),
    name,
    text: `+${added}`,
    detail: result.profile?.is_extrudable ? "closed" : "open",
    note: result.shortfall,
    ghost: { sketch, numGiven },
    number,
    accept: () => take(sketch, `${name}.`),
    more: iconButton("variations", `More like suggestion ${number + 1}`, () => complete({ like: sketch }), { class: "icon-button small" }),
  });
}

/** A tile: a button that accepts, and what it shows on the canvas while the pointer or the focus is on it. */
function tile({ picture: image, name, text, detail, note, ghost, number, accept, more = null }) {
  const show = () => store.setGhost(ghost);
  const hide = () => store.setGhost(null);
  return h(
    "li",
    { class: "tile", onpointerenter: show, onpointerleave: hide },
    h(
      "button",
      { type: "button", class: "tile-main", "aria-label": `Accept ${name}`, title: note ?? `Accept ${name}`, "data-number": number + 1, onclick: accept, onfocus: show, onblur: hide },
      image,
    ),
    h("div", { class: "tile-foot" }, h("b", {}, text), h("span", { class: "muted" }, detail), more),
  );
}

function take(sketch, words) {
  store.setGhost(null);
  store.selection.clear();
  store.commit(sketch);
  store.emit("accepted");
  showMessage(`Accepted. ${words} Undo brings the sketch back.`);
  byId("canvas").focus({ preventScroll: true });
}

/** Accept the tile of a number of the open panel, as by the keys 1 to 8. */
export function acceptNumber(number) {
  const control = document.querySelector(`[role="tabpanel"]:not([hidden]) .tile-main[data-number="${number}"]`);
  control?.click();
  return Boolean(control);
}

/** Constraints for the whole sketch: several results to choose from. */
export async function constrain() {
  const { sketch } = store;
  if (!sketch.primitives.length) {
    showMessage("There is nothing to constrain: draw or open a sketch first.", "error");
    return;
  }
  const form = byId("constrain-form").elements;
  const options = { repair: form.repair.checked };
  hideMessage();
  const list = byId("alternatives");
  list.setAttribute("aria-busy", "true");
  const answer = await attempt(() => post("/constrain", { sketch, options, alternatives: true }));
  list.setAttribute("aria-busy", "false");
  if (!answer || store.sketch !== sketch) return;
  const results = answer.alternatives ?? [answer.result];
  byId("constrain-note").textContent = `${plural(results.length, "result")}.`;
  list.replaceChildren(...results.map(alternativeTile));
}

function alternativeTile(result, number) {
  const found = normalized(result.sketch);
  const state = result.fully_constrained ? "fully constrained" : `${result.dof} ${result.dof === 1 ? "degree" : "degrees"} of freedom`;
  const counts = `${plural(result.constraints, "constraint")}, ${plural(result.dimensions, "dimension")}`;
  const show = () => store.setGhost({ sketch: found, numGiven: found.primitives.length });
  const hide = () => store.setGhost(null);
  const notes = [...(result.actions ?? []), result.warning].filter(Boolean);
  return h(
    "li",
    { class: "alternative", onpointerenter: show, onpointerleave: hide },
    h(
      "button",
      {
        type: "button",
        class: "tile-main",
        "data-number": number + 1,
        "aria-label": `Accept ${result.name}: ${counts}, ${state}`,
        onclick: () => take(found, `${result.name}: ${counts}.`),
        onfocus: show,
        onblur: hide,
      },
      picture(found, { label: "" }),
      h(
        "span",
        { class: "alternative-text" },
        h("b", {}, result.name),
        h("span", {}, counts),
        h("span", { class: `badge ${result.fully_constrained ? "good" : ""}` }, state),
        notes.length ? h("span", { class: "muted" }, notes.slice(0, 2).join(" ")) : null,
      ),
    ),
  );
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Close gaps and repair: before and after side by side. */
export async function repair() {
  const { sketch } = store;
  if (!sketch.primitives.length) {
    showMessage("There is nothing to repair: draw or open a sketch first.", "error");
    return;
  }
  const form = byId("repair-form").elements;
  const chosen = store.selectedPrimitives();
  const request = { sketch, close: form.close.checked };
  if (form.keep.checked && chosen.length) request.keep = chosen;
  hideMessage();
  const answer = await attempt(() => post("/repair", request));
  if (!answer || store.sketch !== sketch) return;
  const found = normalized(answer.sketch);
  const box = boxOf(sketch, found);
  const show = () => store.setGhost({ sketch: found, numGiven: found.primitives.length });
  const hide = () => store.setGhost(null);
  const side = (title, shown, marks) =>
    h("figure", {}, picture(shown, { marks, box, label: `${title}: ${plural(marks.length, "open end")}` }), h("figcaption", {}, h("b", {}, title), ` ${plural(marks.length, "open end")}`));
  const actions = answer.actions ?? [];
  refill(
    byId("repair-result"),
    h("div", { class: "before-after" }, side("Before", sketch, answer.open_ends_before ?? []), side("After", found, answer.open_ends_after ?? [])),
    h("p", {}, sentence(answer.summary)),
    actions.length ? h("ul", { class: "actions-list" }, actions.slice(0, 12).map((action) => h("li", {}, action))) : null,
    answer.warning ? h("p", { class: "warning" }, answer.warning) : null,
    h("p", {}, h("span", { class: `badge ${answer.is_extrudable ? "good" : ""}` }, answer.is_extrudable ? "closed, can be extruded" : "not closed")),
    actions.length
      ? h(
          "button",
          { type: "button", class: "button primary", id: "accept-repair", onpointerenter: show, onpointerleave: hide, onfocus: show, onblur: hide, onclick: () => take(found, sentence(answer.summary)) },
          "Accept the repair",
        )
      : null,
  );
}

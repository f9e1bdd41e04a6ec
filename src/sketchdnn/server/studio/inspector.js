// The panel "Inspect": constraints to add, what is selected, constraints and primitives as lists, and the status line.

import { byId, h, icon, iconButton, plural } from "./dom.js";
import { editDimension } from "./dimension.js";
import { formatNumber } from "./quantity.js";
import { DIMENSIONS, NEEDS, RELATIONS, relation } from "./relations.js";
import { describeConstraint, inUnits, isDimension, labelOf, measure, nameOf, refPoint, removeConstraints, unitFactor } from "./sketch.js";
import { addRelation } from "./solving.js";
import { store } from "./store.js";

// Longer lists are cut off; a last line has the number of rows left out.
const LONGEST = 300;
const KEYS = { coincident: "O", horizontal: "H", vertical: "V", parallel: "Shift+P", perpendicular: "N", tangent: "T", equal: "E", distance: "D", radius: "R", angle: "Shift+A" };
const FREEDOM = { fixed: "fixed", partly: "partly free", free: "free", over: "over-constrained" };

export function setUpInspector() {
  for (const [id, types] of [["palette-relations", RELATIONS.filter((type) => !DIMENSIONS.includes(type))], ["palette-dimensions", DIMENSIONS]]) {
    byId(id).replaceChildren(...types.map(paletteButton));
  }
  store.on("committed selection", showPalette);
  store.on("committed inspected selection", request);
  store.on("sketch", showSelection);
  store.on("hover", markHover);
  byId("units").addEventListener("change", (event) => changeUnits(event.target.value));
  showPalette();
  show();
}

function changeUnits(units) {
  const { sketch } = store;
  const factor = unitFactor(sketch.units, units);
  const strokes = store.strokes.map((stroke) => stroke.map(([x, y]) => [x * factor, y * factor]));
  store.commit(inUnits(sketch, units), store.name, sketch, { strokes });
}

function paletteButton(type) {
  const name = labelOf({ type });
  const key = KEYS[type] ? ` (${KEYS[type]})` : "";
  return iconButton(`c-${type}`, `${name}${key}: select ${NEEDS[type]}`, () => apply(type), { "data-type": type, "aria-label": name });
}

/** Add a constraint to the selection; a single new dimension is opened for editing. */
export async function apply(type) {
  const number = await addRelation(type);
  if (number === null) return;
  store.choose([], { marks: [number] });
  const isNewDimension = DIMENSIONS.includes(type) && store.sketch.constraints.length === number + 1;
  if (isNewDimension) requestAnimationFrame(() => requestAnimationFrame(() => editDimension(number)));
}

function showPalette() {
  const refs = store.selectedRefs();
  for (const control of document.querySelectorAll(".palette [data-type]")) {
    control.disabled = !refs.length || relation(store.sketch, refs, control.dataset.type) === null;
  }
}

let isRequested = false;

function request() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(() => {
    isRequested = false;
    show();
  });
}

function show() {
  showStatus();
  showSelection();
  showConstraints();
  showPrimitives();
  const units = byId("units");
  units.value = store.sketch.units ?? "";
  units.querySelector('option[value=""]').hidden = store.sketch.units !== null;
}

/** Degrees of freedom, open ends and the outline, in the status line. */
function showStatus() {
  const { inspection, sketch } = store;
  const dof = byId("status-dof");
  const outline = byId("status-outline");
  if (!sketch.primitives.length || !inspection) {
    for (const field of [dof, outline]) [field.textContent, field.dataset.state] = ["", ""];
    return;
  }
  const faults = new Set([...inspection.conflicting, ...inspection.redundant]).size;
  dof.textContent = inspection.dof === 0 ? "Fully constrained" : `${inspection.dof} ${inspection.dof === 1 ? "degree" : "degrees"} of freedom`;
  if (faults) dof.textContent += `, ${plural(faults, "constraint")} in conflict or redundant`;
  dof.dataset.state = faults ? "bad" : inspection.dof === 0 ? "good" : "";
  const { profile } = inspection;
  const parts = [];
  if (profile.open_ends.length) parts.push(plural(profile.open_ends.length, "open end"));
  if (profile.crossings.length) parts.push(plural(profile.crossings.length, "crossing"));
  if (profile.is_extrudable) parts.push(`Closed, area ${formatNumber(profile.area, 5)}${sketch.units ? ` ${sketch.units}²` : ""}`);
  outline.textContent = parts.join(", ");
  outline.dataset.state = profile.is_extrudable ? "good" : parts.length ? "bad" : "";
}

const format = (value) => `${formatNumber(value, 6)}${store.sketch.units ? ` ${store.sketch.units}` : ""}`;
const formatPoint = (p) => `${formatNumber(p[0], 6)}, ${formatNumber(p[1], 6)}`;

function showSelection() {
  const { sketch, inspection } = store;
  const refs = store.selectedRefs();
  const box = byId("selection");
  if (refs.length !== 1) {
    const count = refs.length + store.marked.size;
    box.replaceChildren(h("p", { class: "muted" }, count ? `${count} selected` : "Nothing is selected."));
    return;
  }
  const [index, part] = refs[0];
  const primitive = sketch.primitives[index];
  const rows = [];
  if (part !== "whole" && part !== "point") rows.push(["Position", formatPoint(refPoint(sketch, refs[0]))]);
  else {
    const single = [index, "whole"];
    if (primitive.type === "line") rows.push(["Length", format(measure(sketch, { type: "length", refs: [single] }))]);
    if (primitive.radius) rows.push(["Radius", format(primitive.radius)], ["Center", formatPoint(primitive.center)]);
    if (primitive.type === "line") rows.push(["Start", formatPoint(primitive.start)], ["End", formatPoint(primitive.end)]);
    if (primitive.type === "point") rows.push(["Position", formatPoint(primitive.at)]);
    if (primitive.construction) rows.push(["Kind", "construction"]);
    if (inspection?.freedom?.[index]) rows.push(["Freedom", FREEDOM[inspection.freedom[index]] ?? inspection.freedom[index]]);
  }
  const name = part === "whole" || part === "point" ? nameOf(sketch, index) : `${part} of ${nameOf(sketch, index)}`;
  const list = h("dl", { class: "facts" }, rows.flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
  box.replaceChildren(h("p", { class: "selected-name" }, name.charAt(0).toUpperCase() + name.slice(1)), list);
}

function showConstraints() {
  const { sketch, inspection } = store;
  const faulty = new Set([...(inspection?.conflicting ?? []), ...(inspection?.redundant ?? [])]);
  byId("constraints-count").textContent = sketch.constraints.length;
  const rows = sketch.constraints.slice(0, LONGEST).map((constraint, number) => constraintRow(constraint, number, faulty));
  keepFocus(byId("constraint-list"), rows, sketch.constraints.length, "No constraints. Auto-constrain finds them.");
}

function constraintRow(constraint, number, faulty) {
  const text = describeConstraint(store.sketch, constraint);
  const [head, ...rest] = text.split(": ");
  const isFaulty = faulty.has(number);
  const fault = !isFaulty ? "" : store.inspection.conflicting.includes(number) ? ", in conflict" : ", redundant";
  return h(
    "li",
    { class: `row-item${store.marked.has(number) ? " selected" : ""}${isFaulty ? " faulty" : ""}`, "data-number": number, onpointerenter: () => store.setHover({ numbers: [number] }), onpointerleave: () => store.setHover(null) },
    h(
      "button",
      {
        type: "button",
        class: "row-main",
        "data-focus": `c${number}`,
        "aria-pressed": String(store.marked.has(number)),
        onclick: (event) => store.choose([], { add: event.shiftKey || event.ctrlKey || event.metaKey, marks: [number] }),
        ondblclick: () => isDimension(constraint) && editDimension(number),
      },
      icon(`c-${constraint.type}`, 16),
      h("span", { class: "row-text" }, h("b", {}, head), ` ${rest.join(": ")}${fault}`),
    ),
    isDimension(constraint) ? iconButton("edit", `Edit ${text}`, () => editDimension(number), { class: "icon-button small", "data-focus": `e${number}` }) : null,
    iconButton("delete", `Remove ${text}`, () => store.commit(removeConstraints(store.sketch, [number])), { class: "icon-button small", "data-focus": `d${number}` }),
  );
}

function showPrimitives() {
  const { sketch } = store;
  byId("primitives-count").textContent = sketch.primitives.length;
  const rows = sketch.primitives.slice(0, LONGEST).map((primitive, index) => {
    const key = `${index}:${primitive.type === "point" ? "point" : "whole"}`;
    const isSelected = store.selection.has(key);
    return h(
      "li",
      { class: `row-item${isSelected ? " selected" : ""}`, "data-key": key, onpointerenter: () => store.setHover({ key }), onpointerleave: () => store.setHover(null) },
      h(
        "button",
        { type: "button", class: "row-main", "data-focus": `p${index}`, "aria-pressed": String(isSelected), onclick: (event) => store.choose([key], { add: event.shiftKey || event.ctrlKey || event.metaKey }) },
        icon(primitive.type, 16),
        h("span", { class: "row-text" }, nameOf(sketch, index), primitive.construction ? h("span", { class: "muted" }, " construction") : null),
      ),
    );
  });
  keepFocus(byId("primitive-list"), rows, sketch.primitives.length, "The sketch is empty.");
}

/** Fill a list anew without losing the keyboard focus in it. */
function keepFocus(list, rows, count, empty) {
  const focus = list.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  if (!rows.length) rows.push(h("li", { class: "muted row-empty" }, empty));
  if (count > LONGEST) rows.push(h("li", { class: "muted row-empty" }, `and ${count - LONGEST} more`));
  list.replaceChildren(...rows);
  if (focus) list.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
}

function markHover() {
  for (const row of document.querySelectorAll(".row-item")) {
    const isHover = row.dataset.key ? store.hover?.key === row.dataset.key : store.hover?.numbers?.includes(Number(row.dataset.number));
    row.classList.toggle("hover", Boolean(isHover));
  }
}

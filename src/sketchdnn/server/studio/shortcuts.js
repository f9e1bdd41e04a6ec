// The keyboard: one table of keys, which the help dialog shows too.

import { byId, h } from "./dom.js";
import { generate } from "./generate.js";
import { apply } from "./inspector.js";
import { removeConstraints, removePrimitives, toggleConstruction } from "./sketch.js";
import { store } from "./store.js";
import { acceptNumber, complete } from "./suggestions.js";
import { traceStrokes } from "./tracing.js";

const PAN = 60;

/** Remove what is selected: constraints and primitives. */
export function removeSelected() {
  const primitives = store.selectedPrimitives();
  if (!primitives.length && !store.marked.size) return;
  let { sketch } = store;
  if (store.marked.size) sketch = removeConstraints(sketch, [...store.marked]);
  if (primitives.length) sketch = removePrimitives(sketch, primitives);
  store.choose([]);
  store.commit(sketch);
}

export function switchConstruction(tools) {
  const chosen = store.selectedPrimitives();
  if (chosen.length) store.commit(toggleConstruction(store.sketch, chosen));
  else {
    tools.construction = !tools.construction;
    if (store.tool !== "select") store.setTool(store.tool);
  }
  store.emit("selection");
}

const inSketch = () => store.view === "sketch";

/** [keys, group, what they do, action, where they work] */
function table(canvas, tools) {
  const tool = (name) => () => store.setTool(name);
  const relation = (name) => () => apply(name);
  const pan = (x, y) => () => canvas.pan((x * PAN) / canvas.scale, (y * PAN) / canvas.scale);
  return [
    ["S", "Draw", "Select", tool("select"), inSketch],
    ["L", "Draw", "Line", tool("line"), inSketch],
    ["C", "Draw", "Circle", tool("circle"), inSketch],
    ["A", "Draw", "Arc", tool("arc"), inSketch],
    ["P", "Draw", "Point", tool("point"), inSketch],
    ["B", "Draw", "Draw by hand", tool("freehand"), inSketch],
    ["Enter", "Draw", "Trace the strokes", traceStrokes, () => isOnCanvas() && store.strokes.length > 0],
    ["X", "Draw", "Construction on or off", () => switchConstruction(tools), inSketch],
    ["Esc", "Draw", "Stop drawing; clear the selection", () => tools.cancel() || store.clearSelection(), inSketch],
    ["Delete", "Edit", "Remove what is selected", removeSelected, inSketch],
    ["Ctrl+A", "Edit", "Select all primitives", selectAll, inSketch],
    ["Ctrl+Z", "Edit", "Undo", () => store.undo(), inSketch],
    ["Ctrl+Shift+Z", "Edit", "Redo", () => store.redo(), inSketch],
    ["Ctrl+Y", "", "Redo", () => store.redo(), inSketch],
    ["Ctrl+O", "Edit", "Open a file", () => byId("open").click()],
    ["Ctrl+S", "Edit", "Export", () => byId("export").click(), inSketch],
    ["H", "Constrain", "Horizontal", relation("horizontal"), inSketch],
    ["V", "Constrain", "Vertical", relation("vertical"), inSketch],
    ["O", "Constrain", "Coincident", relation("coincident"), inSketch],
    ["Shift+P", "Constrain", "Parallel", relation("parallel"), inSketch],
    ["N", "Constrain", "Perpendicular", relation("perpendicular"), inSketch],
    ["T", "Constrain", "Tangent", relation("tangent"), inSketch],
    ["E", "Constrain", "Equal", relation("equal"), inSketch],
    ["D", "Constrain", "Distance or length", relation("distance"), inSketch],
    ["R", "Constrain", "Radius", relation("radius"), inSketch],
    ["Shift+A", "Constrain", "Angle", relation("angle"), inSketch],
    ["F", "View", "Show the whole sketch", () => canvas.fit(), inSketch],
    ["+", "View", "Zoom in", () => canvas.zoom(1.25), inSketch],
    ["-", "View", "Zoom out", () => canvas.zoom(0.8), inSketch],
    ["ArrowLeft", "View", "Move the view left", pan(-1, 0), isOnCanvas],
    ["ArrowRight", "View", "Move the view right", pan(1, 0), isOnCanvas],
    ["ArrowUp", "View", "Move the view up", pan(0, 1), isOnCanvas],
    ["ArrowDown", "View", "Move the view down", pan(0, -1), isOnCanvas],
    ["1", "View", "Accept the first suggestion; 2 to 8 the others", () => acceptNumber(1), inSketch],
    ...[2, 3, 4, 5, 6, 7, 8].map((number) => [String(number), "", "", () => acceptNumber(number), inSketch]),
    ["G", "View", "Switch between Generate and Sketch", () => store.setView(inSketch() ? "generate" : "sketch")],
    ["Ctrl+Enter", "View", "Generate, or complete the sketch", () => (inSketch() ? runComplete() : generate())],
    ["?", "View", "This help", () => byId("help").showModal()],
  ];
}

const isOnCanvas = () => inSketch() && document.activeElement === byId("canvas");

function runComplete() {
  byId("tab-complete").click();
  complete();
}

function selectAll() {
  store.choose(store.sketch.primitives.map((primitive, index) => `${index}:${primitive.type === "point" ? "point" : "whole"}`));
}

const NAMES = { Escape: "Esc", Backspace: "Delete", "=": "+" };

/** The name of a key press in the table. */
function pressed(event) {
  const key = NAMES[event.key] ?? (event.key.length === 1 ? event.key.toUpperCase() : event.key);
  const isLetter = /^[A-Z]$/.test(key);
  const shift = event.shiftKey && (isLetter || key.length > 1) ? "Shift+" : "";
  return (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + shift + key;
}

const isTyping = (target) => target.closest?.("input:not([type=checkbox]):not([type=range]), select, textarea") !== null;

export function setUpShortcuts(canvas, tools) {
  const rows = table(canvas, tools);
  const actions = new Map(rows.map(([keys, , , action, where]) => [keys, { action, where }]));
  addEventListener("keydown", (event) => {
    if (event.key === " " && document.activeElement === canvas.svg) {
      tools.isPanning = true;
      event.preventDefault();
    }
    if (event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const keys = pressed(event);
    if (isTyping(event.target) && !["Ctrl+Enter", "Ctrl+S", "Ctrl+O"].includes(keys)) return;
    const found = actions.get(keys);
    if (!found || (found.where && !found.where())) return;
    event.preventDefault();
    found.action();
  });
  addEventListener("keyup", (event) => {
    if (event.key === " ") tools.isPanning = false;
  });
  showHelp(rows);
}

function showHelp(rows) {
  const groups = ["Draw", "Constrain", "Edit", "View"];
  const named = (keys) => keys.replace("Arrow", "").split("+").filter(Boolean);
  byId("help-keys").replaceChildren(
    ...groups.map((group) =>
      h(
        "section",
        {},
        h("h3", {}, group),
        h(
          "dl",
          { class: "keys" },
          rows.filter((row) => row[1] === group).map(([keys, , text]) => [h("dt", {}, (named(keys).length ? named(keys) : ["+"]).map((key) => h("kbd", {}, key))), h("dd", {}, text)]),
        ),
      ),
    ),
  );
}

// The state of the studio: one open sketch with its history and selection. Views subscribe to its events.
// Events: "sketch" (what is drawn changed, also while it is dragged), "committed" (a step of the history), "inspected",
// "selection", "hover", "ghost", "tool", "view", "settings", "opened", "scaled" and "accepted" (show the whole sketch).

import { EMPTY, normalized } from "./sketch.js";

const LIMIT = 200;
const SAVED = "sketchdnn-sketch";

class Store extends EventTarget {
  sketch = EMPTY;
  name = "New sketch";
  /** Selected primitives and points, as keys such as "3:whole" or "3:start". */
  selection = new Set();
  /** Numbers of selected constraints. */
  marked = new Set();
  /** The answer of /inspect for the sketch; null while it is not known. */
  inspection = null;
  /** Strokes by hand that are not traced yet: lists of positions in the coordinates of the sketch. */
  strokes = [];
  /** The picture that the sketch was traced from, and where it lies; see `underlayOf` in tracing.js. */
  underlay = null;
  /** A suggestion that is drawn over the sketch: {sketch, numGiven}. */
  ghost = null;
  hover = null;
  tool = "select";
  view = "generate";
  shows = { constraints: true, dimensions: true, grid: true, snap: true, picture: true };
  #past = [];
  #future = [];

  emit(name) {
    this.dispatchEvent(new Event(name));
  }

  on(names, listener) {
    for (const name of names.split(" ")) this.addEventListener(name, () => listener(this));
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  /** Open another sketch, as one step of the history; `underlay` is the picture that it was traced from. */
  open(sketch, name, underlay = null) {
    this.selection.clear();
    this.marked.clear();
    this.commit(normalized(sketch), name, this.sketch, { strokes: [], underlay });
    this.emit("opened");
  }

  /** Change the sketch, and with it strokes and underlay if they are given, as one step of the history. */
  commit(sketch, name = this.name, before = this.sketch, { strokes = this.strokes, underlay = this.underlay } = {}) {
    this.#record(before);
    this.#set({ sketch: normalized(sketch), name, strokes, underlay });
  }

  /** Change the strokes, as one step of the history. */
  setStrokes(strokes) {
    this.#record(this.sketch);
    this.#set({ ...this.#state(), strokes });
  }

  #state() {
    return { sketch: this.sketch, name: this.name, strokes: this.strokes, underlay: this.underlay };
  }

  #record(before) {
    this.#past.push({ ...this.#state(), sketch: before });
    if (this.#past.length > LIMIT) this.#past.shift();
    this.#future = [];
  }

  /** Show a sketch while it is dragged; no step of the history. */
  preview(sketch) {
    this.sketch = sketch;
    this.emit("sketch");
  }

  undo() {
    this.#step(this.#past, this.#future);
  }

  redo() {
    this.#step(this.#future, this.#past);
  }

  #step(from, to) {
    if (!from.length) return;
    to.push(this.#state());
    this.#set(from.pop());
  }

  #set({ sketch, name, strokes, underlay }) {
    if (sketch !== this.sketch) this.inspection = null;
    [this.ghost, this.hover] = [null, null];
    Object.assign(this, { sketch, name, strokes, underlay });
    const exists = (key) => Number.parseInt(key, 10) < sketch.primitives.length;
    this.selection = new Set([...this.selection].filter(exists));
    this.marked = new Set([...this.marked].filter((number) => number < sketch.constraints.length));
    this.emit("sketch");
    this.emit("committed");
    this.emit("selection");
    this.#save();
  }

  #save() {
    try {
      sessionStorage.setItem(SAVED, JSON.stringify(this.#state()));
    } catch {
      // A sketch too large to keep over a reload.
    }
  }

  /** The sketch of this tab before it was loaded again. */
  restore() {
    try {
      const saved = JSON.parse(sessionStorage.getItem(SAVED));
      const strokes = saved?.strokes ?? [];
      if (!saved?.sketch.primitives.length && !strokes.length) return;
      this.#set({ sketch: normalized(saved.sketch), name: saved.name, strokes, underlay: saved.underlay ?? null });
    } catch {
      sessionStorage.removeItem(SAVED);
    }
  }

  /** The numbers of the selected primitives, in order; points count for their primitive with `points`. */
  selectedPrimitives(points = false) {
    const chosen = [...this.selection].map((key) => key.split(":")).filter(([, part]) => points || part === "whole" || part === "point");
    return [...new Set(chosen.map(([index]) => Number(index)))].sort((a, b) => a - b);
  }

  /** The selection as references, in the order in which it was made. */
  selectedRefs() {
    return [...this.selection].map((key) => key.split(":")).map(([index, part]) => [Number(index), part]);
  }

  choose(keys, { add = false, marks = [] } = {}) {
    if (add) {
      for (const key of keys) if (!this.selection.delete(key)) this.selection.add(key);
      for (const mark of marks) if (!this.marked.delete(mark)) this.marked.add(mark);
    } else {
      this.selection = new Set(keys);
      this.marked = new Set(marks);
    }
    this.emit("selection");
  }

  clearSelection() {
    if (this.selection.size || this.marked.size) this.choose([]);
  }

  setTool(tool) {
    this.tool = tool;
    this.emit("tool");
  }

  setView(view) {
    this.view = view;
    this.emit("view");
  }

  setGhost(ghost) {
    this.ghost = ghost;
    this.emit("ghost");
  }

  setHover(hover) {
    if (JSON.stringify(hover) === JSON.stringify(this.hover)) return;
    this.hover = hover;
    this.emit("hover");
  }

  setInspection(inspection) {
    this.inspection = inspection;
    this.emit("sketch");
    this.emit("inspected");
  }

  toggle(name) {
    this.shows = { ...this.shows, [name]: !this.shows[name] };
    this.emit("settings");
  }
}

export const store = new Store();

// The pointer on the canvas: selection, dragging, drawing, pan and zoom; mouse, pen and touch.

import { Draft, HINTS } from "./draft.js";
import { Drag } from "./drag.js";
import { angleOf, distance, middleOf, nearestOn } from "./geometry.js";
import { formatNumber, roundStep } from "./quantity.js";
import { addPrimitives, snapPoints } from "./sketch.js";
import { store } from "./store.js";

const CLICK_PIXELS = 4;
const END_PIXELS = 4;
const DOUBLE_CLICK = 450;
const SNAP_PIXELS = 10;
const GRID_PIXELS = 6;
const GUIDE = (3.5 * Math.PI) / 180;
const WHEEL = 0.0016;
// Pixels between positions of a stroke by hand.
const STROKE_STEP = 1.5;

export class Tools {
  #draft = null;
  /** What the pressed pointer does: {kind, …}; null while none is pressed. */
  #action = null;
  #fingers = new Map();
  #lastMark = { number: null, time: 0 };
  isPanning = false;
  construction = false;

  /** `editDimension(number)` opens a dimension; `onPosition(at)` and `onHint(text)` feed the status line. */
  constructor(canvas, { editDimension, onPosition, onHint }) {
    Object.assign(this, { canvas, editDimension, onPosition, onHint });
    const { svg } = canvas;
    svg.addEventListener("pointerdown", (event) => this.#down(event));
    svg.addEventListener("pointermove", (event) => this.#move(event));
    svg.addEventListener("pointerup", (event) => this.#up(event));
    svg.addEventListener("pointercancel", () => this.cancel());
    svg.addEventListener("pointerleave", () => this.#leave());
    svg.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    svg.addEventListener("contextmenu", (event) => event.preventDefault());
    svg.addEventListener("focusin", (event) => this.#focus(event));
    store.on("tool", () => this.#start());
    store.on("opened", () => this.#start());
    this.#start();
  }

  #start() {
    this.#draft = store.tool === "select" || store.tool === "freehand" ? null : new Draft(store.tool, this.construction);
    this.canvas.draft = null;
    this.canvas.svg.dataset.tool = store.tool;
    if (store.tool !== "select") store.setGhost(null);
    this.canvas.request();
    this.onHint(this.#draft?.hint ?? HINTS[store.tool]);
  }

  /** Stop what is under way: a drag, a chain of lines, then the tool. Returns whether there was any. */
  cancel() {
    const action = this.#action;
    this.#action = null;
    this.#fingers.clear();
    if (action?.kind === "drag") action.drag?.cancel();
    delete this.canvas.svg.dataset.dragging;
    if (action?.kind === "box" || action?.kind === "drag" || action?.kind === "stroke") {
      this.canvas.draft = null;
      this.canvas.request();
      return true;
    }
    if (this.#draft?.places.length) this.#start();
    else if (store.tool !== "select") store.setTool("select");
    else return false;
    return true;
  }

  #down(event) {
    const pixel = this.canvas.pixelOf(event);
    this.canvas.svg.focus({ preventScroll: true, focusVisible: false });
    this.canvas.svg.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") {
      this.#fingers.set(event.pointerId, pixel);
      if (this.#fingers.size === 2) return this.#pinch();
    }
    if (event.button === 1 || event.button === 2 || this.isPanning) {
      this.#action = { kind: "pan", from: pixel };
    } else if (event.button === 0 && store.tool === "freehand") {
      this.#action = { kind: "stroke", from: pixel, pixels: [pixel] };
    } else if (event.button === 0) {
      this.#action = this.#draft ? { kind: "draw", from: pixel } : this.#grab(event, pixel);
      if (this.#draft) this.#click(pixel);
    }
    return undefined;
  }

  /** Press with the select tool: on a mark, on geometry, or on empty space. */
  #grab(event, pixel) {
    const mark = event.target.closest?.("[data-numbers]");
    const add = event.shiftKey || event.ctrlKey || event.metaKey;
    const reach = event.pointerType === "touch" ? 18 : 8;
    // A joint is drawn over the ends that it joins, and a glyph may touch an end: pressing there drags the end.
    const isOnEnd = !store.ghost && (this.canvas.pick(pixel, END_PIXELS) ?? ":whole").split(":")[1] !== "whole";
    if (mark && !isOnEnd && !mark.classList.contains("joint")) {
      return { kind: "mark", numbers: mark.dataset.numbers.split(",").map(Number), add, isDimension: mark.classList.contains("dimension") };
    }
    const key = store.ghost ? null : this.canvas.pick(pixel, reach);
    if (key) return { kind: "drag", key, from: pixel, add, drag: null };
    return { kind: event.pointerType === "touch" ? "pan" : "box", from: pixel, add, isClick: true };
  }

  #pinch() {
    const [a, b] = [...this.#fingers.values()];
    if (this.#action?.kind === "drag") this.#action.drag?.cancel();
    delete this.canvas.svg.dataset.dragging;
    this.canvas.draft = null;
    this.#action = { kind: "pinch", gap: distance(a, b), middle: middleOf(a, b) };
  }

  #move(event) {
    const pixel = this.canvas.pixelOf(event);
    this.onPosition(this.canvas.toSketch(pixel));
    if (this.#fingers.has(event.pointerId)) this.#fingers.set(event.pointerId, pixel);
    const action = this.#action;
    if (!action || action.kind === "draw") return this.#hover(event, pixel);
    const isFar = distance(action.from ?? pixel, pixel) > CLICK_PIXELS;
    if (action.kind === "pinch" && this.#fingers.size === 2) this.#movePinch(action);
    if (action.kind === "pan" && (isFar || !action.isClick)) {
      [action.isClick] = [false];
      const [a, b] = [this.canvas.toSketch(action.from), this.canvas.toSketch(pixel)];
      this.canvas.pan(a[0] - b[0], a[1] - b[1]);
      action.from = pixel;
    }
    if (action.kind === "box" && isFar) {
      this.canvas.draft = { box: [action.from, pixel] };
      this.canvas.request();
    }
    if (action.kind === "drag" && (isFar || action.drag)) this.#moveDrag(action, pixel);
    if (action.kind === "stroke") this.#moveStroke(action, event);
    return undefined;
  }

  #movePinch(action) {
    const [a, b] = [...this.#fingers.values()];
    const [gap, middle] = [distance(a, b), middleOf(a, b)];
    const [from, to] = [this.canvas.toSketch(action.middle), this.canvas.toSketch(middle)];
    this.canvas.pan(from[0] - to[0], from[1] - to[1]);
    this.canvas.zoom(gap / (action.gap || 1), middle);
    Object.assign(action, { gap, middle });
  }

  /** All positions since the last frame belong to a stroke, not only the newest. */
  #moveStroke(action, event) {
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length ? passed : [event]) {
      const pixel = this.canvas.pixelOf(each);
      if (distance(action.pixels.at(-1), pixel) >= STROKE_STEP) action.pixels.push(pixel);
    }
    this.canvas.draft = { stroke: action.pixels };
    this.canvas.request();
  }

  #endStroke({ pixels }) {
    this.canvas.draft = null;
    this.canvas.request();
    const length = pixels.slice(1).reduce((sum, pixel, index) => sum + distance(pixels[index], pixel), 0);
    if (length > 2 * CLICK_PIXELS) store.setStrokes([...store.strokes, pixels.map(this.canvas.toSketch)]);
  }

  #moveDrag(action, pixel) {
    if (!action.drag) {
      const [index, part] = action.key.split(":");
      const { type } = store.sketch.primitives[Number(index)];
      const isRim = part === "whole" && (type === "circle" || type === "arc");
      action.drag = new Drag(Number(index), isRim ? "radius" : part, this.canvas.toSketch(action.from));
      this.canvas.svg.dataset.dragging = "true";
      if (!store.selection.has(action.key)) store.choose([action.key]);
    }
    action.drag.move(this.canvas.toSketch(pixel));
  }

  async #up(event) {
    const pixel = this.canvas.pixelOf(event);
    this.#fingers.delete(event.pointerId);
    const action = this.#action;
    this.#action = null;
    if (!action) return;
    if (action.kind === "draw" && distance(action.from, pixel) > 3 * CLICK_PIXELS) this.#click(pixel);
    if (action.kind === "mark") this.#clickMark(action, event.timeStamp);
    if (action.kind === "drag" && !action.drag) store.choose([action.key], { add: action.add });
    if (action.kind === "drag" && action.drag) await this.#endDrag(action.drag);
    if (action.kind === "pan" && action.isClick && !action.add) store.clearSelection();
    if (action.kind === "box") this.#endBox(action, pixel);
    if (action.kind === "stroke") this.#endStroke(action);
  }

  /** The canvas is marked as dragging until the last answer is there. */
  async #endDrag(drag) {
    await drag.end();
    delete this.canvas.svg.dataset.dragging;
  }

  /** Select a glyph or a dimension; a dimension that is clicked twice is edited. */
  #clickMark({ numbers, add, isDimension }, time) {
    const [number] = numbers;
    const isSecond = isDimension && this.#lastMark.number === number && time - this.#lastMark.time < DOUBLE_CLICK;
    this.#lastMark = { number, time };
    if (isSecond) this.editDimension(number);
    else store.choose([], { add, marks: numbers });
  }

  #endBox(action, pixel) {
    this.canvas.draft = null;
    if (distance(action.from, pixel) > CLICK_PIXELS) store.choose(this.canvas.pickBox(action.from, pixel), { add: action.add });
    else if (!action.add) store.clearSelection();
    this.canvas.request();
  }

  #hover(event, pixel) {
    if (store.tool === "freehand") return;
    if (this.#draft) {
      const snap = this.#snap(pixel);
      const primitives = this.#draft.preview(snap);
      this.canvas.draft = { primitives, snap: { ...snap, text: sizeText(primitives[0]) } };
      this.canvas.request();
      return;
    }
    const mark = event.target.closest?.("[data-numbers]");
    if (mark && !mark.classList.contains("joint")) store.setHover({ numbers: mark.dataset.numbers.split(",").map(Number) });
    else {
      const key = store.ghost ? null : this.canvas.pick(pixel);
      store.setHover(key ? { key } : null);
    }
  }

  #leave() {
    if (this.#action) return;
    store.setHover(null);
    this.onPosition(null);
    if (!this.canvas.draft) return;
    this.canvas.draft = null;
    this.canvas.request();
  }

  #click(pixel) {
    const made = this.#draft.click(this.#snap(pixel), store.sketch.primitives.length);
    if (made) store.commit(addPrimitives(store.sketch, [made.primitive], made.constraints));
    this.onHint(this.#draft.hint);
    this.canvas.draft = null;
    this.canvas.request();
  }

  #focus(event) {
    const dimension = event.target.closest?.(".dimension");
    if (dimension) store.setHover({ numbers: [Number(dimension.dataset.number)] });
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    this.canvas.zoom(Math.exp(-event.deltaY * lines * WHEEL), this.canvas.pixelOf(event));
  }

  /** Where a click counts: at an end, a center or the origin; on a guide; on a curve; else on round numbers. */
  #snap(pixel) {
    const at = this.canvas.toSketch(pixel);
    if (!store.shows.snap) return { at };
    const gapTo = (point) => distance(this.canvas.toPixel(point), pixel);
    const points = snapPoints(store.sketch).map((each) => ({ ...each, gap: gapTo(each.at) }));
    const nearest = points.filter((each) => each.gap <= SNAP_PIXELS).sort((a, b) => a.gap - b.gap)[0];
    const from = this.#draft.guideFrom;
    if (nearest && !(from && distance(from, nearest.at) === 0)) return { at: nearest.at, ref: nearest.ref };
    const step = roundStep(GRID_PIXELS / this.canvas.scale);
    const [x, y] = at.map((value) => Number((Math.round(value / step) * step).toPrecision(12)));
    if (from) {
      const slope = Math.abs(angleOf(from, at)) % Math.PI;
      if (Math.min(slope, Math.PI - slope) < GUIDE && x !== from[0]) return { at: [x, from[1]], guide: "horizontal" };
      if (Math.abs(slope - Math.PI / 2) < GUIDE && y !== from[1]) return { at: [from[0], y], guide: "vertical" };
    }
    for (const [curve, primitive] of store.sketch.primitives.entries()) {
      if (primitive.type === "point") continue;
      const on = nearestOn(primitive, at);
      if (gapTo(on) <= 0.7 * SNAP_PIXELS && this.#draft.tool !== "circle") return { at: on, curve };
    }
    return { at: [x, y] };
  }
}

function sizeText(primitive) {
  const units = store.sketch.units ? ` ${store.sketch.units}` : "";
  if (primitive?.type === "line" && !primitive.construction) return formatNumber(distance(primitive.start, primitive.end), 4) + units;
  return primitive?.radius ? `R ${formatNumber(primitive.radius, 4)}${units}` : "";
}

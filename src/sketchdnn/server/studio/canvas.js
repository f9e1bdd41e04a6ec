// The drawing area: a view of the sketch with pan and zoom. All positions are turned to pixels here, in double
// precision, so that drawings far from the origin keep their shape.

import { annotate } from "./annotations.js";
import { PARTS, boundsOf, distance, isInBox, nearestOn, pathOf, pointOf } from "./geometry.js";
import { plural, s } from "./dom.js";
import { formatNumber, roundStep } from "./quantity.js";
import { describe, describeConstraint, unitFactor } from "./sketch.js";
import { store } from "./store.js";

const LAYERS = ["underlay", "grid", "curves", "markers", "points", "annotations", "dimensions", "strokes", "draft"];
// Dimensions are drawn outside of the sketch.
const MARGIN = 88;
const GRID_PIXELS = 22;
// With more primitives, ends are marked only where they are selected, and constraints in the list only.
const MANY = 400;
// Milliseconds after which a view is at rest.
const REST = 120;

export class Canvas {
  width = 300;
  height = 200;
  center = [0, 0];
  scale = 4;
  /** What the drawing tools show: {primitives, snap, box, stroke}. */
  draft = null;
  #requested = false;
  /** The view that was drawn last. */
  #drawn = { center: [0, 0], scale: 0 };
  #rest = 0;
  #kept = new Map();
  #constraints = null;
  #picture = null;
  #count = 0;
  /** Whether a person moved the view since the whole sketch was shown. */
  #isMoved = false;

  constructor(svg) {
    this.svg = svg;
    this.layers = Object.fromEntries(LAYERS.map((name) => [name, svg.appendChild(s("g", { class: `layer-${name}` }))]));
    new ResizeObserver(() => this.#resize()).observe(svg);
    store.on("sketch selection ghost settings hover", () => this.request());
    store.on("opened scaled", () => this.fit());
    store.on("accepted", () => this.#isOutOfView() && this.fit());
    this.#resize();
  }

  #resize() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !height) return;
    [this.width, this.height] = [width, height];
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (this.#isMoved) this.request();
    else this.fit();
  }

  toPixel = (p) => [
    this.width / 2 + (p[0] - this.center[0]) * this.scale,
    this.height / 2 - (p[1] - this.center[1]) * this.scale,
  ];

  toSketch = (p) => [
    this.center[0] + (p[0] - this.width / 2) / this.scale,
    this.center[1] - (p[1] - this.height / 2) / this.scale,
  ];

  /** The pixel of a pointer event. */
  pixelOf(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** Show the whole sketch. */
  fit() {
    const strokes = store.strokes.flat().map((at) => ({ type: "point", at }));
    const box = boundsOf([...this.shown().primitives, ...strokes]);
    this.#isMoved = false;
    const margin = Math.min(MARGIN, 0.2 * Math.min(this.width, this.height));
    const [width, height] = [this.width - 2 * margin, this.height - 2 * margin];
    this.center = box ? box.center : [0, 0];
    const share = box ? Math.max(box.width / width, box.height / height) : 0;
    this.scale = share > 0 ? 1 / share : Math.min(width, height) / 120;
    this.request();
  }

  #isOutOfView() {
    const box = boundsOf(store.sketch.primitives);
    if (!box) return false;
    const corners = [box.low, box.high].map(this.toPixel);
    return corners.some(([x, y]) => x < 0 || y < 0 || x > this.width || y > this.height);
  }

  zoom(factor, at = [this.width / 2, this.height / 2]) {
    const fixed = this.toSketch(at);
    const box = boundsOf(store.sketch.primitives);
    const unit = Math.min(this.width, this.height) / (box?.size || 100);
    this.scale = Math.min(Math.max(this.scale * factor, unit * 1e-3), unit * 1e5);
    const moved = this.toSketch(at);
    this.pan(fixed[0] - moved[0], fixed[1] - moved[1]);
  }

  /** Move the view, in the units of the sketch. */
  pan(dx, dy) {
    this.#isMoved = true;
    this.center = [this.center[0] + dx, this.center[1] + dy];
    if (this.shown().primitives.length > MANY && this.scale === this.#drawn.scale) this.#shift();
    else this.request();
  }

  /** Move what is drawn, and draw it anew when the view has come to rest: large drawings take longer than a frame. */
  #shift() {
    const [x, y] = this.toPixel(this.#drawn.center);
    const move = `translate(${x - this.width / 2} ${y - this.height / 2})`;
    for (const layer of Object.values(this.layers)) layer.setAttribute("transform", move);
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.request(), REST);
  }

  request() {
    if (this.#requested) return;
    this.#requested = true;
    requestAnimationFrame(() => {
      this.#requested = false;
      this.render();
    });
  }

  /** The sketch that is drawn: the open one, or a suggestion to look at. */
  shown() {
    return store.ghost?.sketch ?? store.sketch;
  }

  /** What is at a pixel: a point such as "3:start" first, else a curve such as "3:whole"; null if nothing. */
  pick(pixel, reach = 8) {
    const { primitives } = store.sketch;
    const at = this.toSketch(pixel);
    let found = { key: null, gap: Infinity };
    const offer = (key, point, least) => {
      const gap = distance(this.toPixel(point), pixel);
      if (gap <= least && gap < found.gap) found = { key, gap };
    };
    primitives.forEach((primitive, index) => {
      for (const part of PARTS[primitive.type]) offer(`${index}:${part}`, pointOf(primitive, part), reach + 1);
    });
    if (!found.key) primitives.forEach((primitive, index) => offer(`${index}:whole`, nearestOn(primitive, at), reach));
    return found.key;
  }

  /** The primitives in a box of two pixels; to the left, those that it touches too. */
  pickBox(from, to) {
    const [a, b] = [this.toSketch(from), this.toSketch(to)];
    const low = [Math.min(a[0], b[0]), Math.min(a[1], b[1])];
    const high = [Math.max(a[0], b[0]), Math.max(a[1], b[1])];
    const touching = to[0] < from[0];
    return store.sketch.primitives.flatMap((p, index) =>
      isInBox(p, low, high, touching) ? [`${index}:${p.type === "point" ? "point" : "whole"}`] : [],
    );
  }

  render() {
    const sketch = this.shown();
    const { layers } = this;
    this.#drawn = { center: this.center, scale: this.scale };
    for (const layer of Object.values(layers)) layer.removeAttribute("transform");
    const strokes = store.strokes.length ? `, ${plural(store.strokes.length, "stroke")} by hand` : "";
    this.svg.setAttribute("aria-label", `Sketch: ${describe(sketch)}${strokes}`);
    this.#forget(sketch);
    put(layers.underlay, this.#underlay());
    layers.grid.replaceChildren(...(store.shows.grid ? this.#grid() : []));
    put(layers.curves, this.#curves(sketch));
    layers.markers.replaceChildren(...this.#markers());
    put(layers.points, this.#points(sketch));
    const { marks, dimensions } = this.#annotations(sketch);
    put(layers.annotations, marks);
    this.#keepFocus(() => layers.dimensions.replaceChildren(...dimensions));
    layers.strokes.replaceChildren(...store.strokes.map((stroke) => strokePath(stroke.map(this.toPixel))));
    layers.draft.replaceChildren(...this.#draft());
  }

  /** Elements are kept from drawing to drawing, so that a drag only moves them; those of another sketch are not. */
  #forget(sketch) {
    if (sketch.constraints === this.#constraints && sketch.primitives.length === this.#count) return;
    [this.#constraints, this.#count] = [sketch.constraints, sketch.primitives.length];
    this.#kept.clear();
  }

  /** The element of a key, made where there is none yet, with these attributes. */
  #element(key, make, attributes) {
    if (!this.#kept.has(key)) this.#kept.set(key, make());
    const element = this.#kept.get(key);
    for (const [name, value] of Object.entries(attributes)) {
      const text = String(value);
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
    return element;
  }

  /** Replace dimensions without losing the keyboard focus on one of them. */
  #keepFocus(replace) {
    const number = this.layers.dimensions.contains(document.activeElement) ? document.activeElement.dataset.number : null;
    replace();
    if (number !== null) this.layers.dimensions.querySelector(`.dimension[data-number="${number}"]`)?.focus({ preventScroll: true });
  }

  #grid() {
    const minor = roundStep((GRID_PIXELS / this.scale) * 2);
    const [low, high] = [this.toSketch([0, this.height]), this.toSketch([this.width, 0])];
    const [thin, thick] = [[], []];
    for (const axis of [0, 1]) {
      const first = Math.ceil(low[axis] / minor);
      const last = Math.min(Math.floor(high[axis] / minor), first + 400);
      for (let k = first; k <= last; k += 1) {
        const at = this.toPixel([k * minor, k * minor])[axis].toFixed(1);
        (k % 5 ? thin : thick).push(axis ? `M0 ${at}H${this.width}` : `M${at} 0V${this.height}`);
      }
    }
    const [x, y] = this.toPixel([0, 0]).map((value) => value.toFixed(1));
    return [
      s("path", { class: "grid-minor", d: thin.join("") }),
      s("path", { class: "grid-major", d: thick.join("") }),
      s("path", { class: "axis-x", d: `M0 ${y}H${this.width}` }),
      s("path", { class: "axis-y", d: `M${x} 0V${this.height}` }),
    ];
  }

  /** The picture that the sketch was traced from, where it was. */
  #underlay() {
    const { underlay, sketch } = store;
    if (!underlay || !store.shows.picture) return [];
    if (this.#picture?.getAttribute("href") !== underlay.href) {
      this.#picture = s("image", { class: "underlay", href: underlay.href, preserveAspectRatio: "none" });
    }
    const factor = unitFactor(underlay.units, sketch.units);
    const [x, y] = this.toPixel(underlay.corner.map((value) => value * factor));
    const side = underlay.step * factor * this.scale;
    const place = { x, y, width: underlay.width * side, height: underlay.height * side };
    for (const [name, value] of Object.entries(place)) this.#picture.setAttribute(name, value.toFixed(2));
    return [this.#picture];
  }

  #curves(sketch) {
    const { ghost, selection, hover, inspection } = store;
    const related = this.#related(sketch);
    const elements = sketch.primitives.map((primitive, index) => {
      const classes = ["curve", primitive.type];
      if (primitive.construction) classes.push("construction");
      if (ghost) classes.push(index < ghost.numGiven ? "given" : "added");
      else if (inspection?.freedom?.[index]) classes.push(`freedom-${inspection.freedom[index]}`);
      if (!ghost && (selection.has(`${index}:whole`) || selection.has(`${index}:point`))) classes.push("selected");
      if (!ghost && (hover?.key === `${index}:whole` || hover?.key === `${index}:point` || related.has(index))) classes.push("hover");
      const look = { class: classes.join(" "), d: pathOf(primitive, this.toPixel, this.scale) };
      return this.#element(`curve ${index}`, () => s("path", { "data-index": index }), look);
    });
    const rank = (element) => (element.classList.contains("selected") || element.classList.contains("hover") ? 2 : element.classList.contains("construction") ? 0 : 1);
    return elements.sort((a, b) => rank(a) - rank(b));
  }

  /** The primitives of the constraint under the pointer and of those that are selected. */
  #related(sketch) {
    const numbers = [...store.marked, ...(store.hover?.numbers ?? [])];
    const refs = numbers.flatMap((number) => sketch.constraints[number]?.refs ?? []);
    return new Set(refs.filter((ref) => ref.length === 2 && ref[1] === "whole").map((ref) => ref[0]));
  }

  #markers() {
    const profile = store.ghost ? null : store.inspection?.profile;
    const open = (profile?.open_ends ?? []).map((end) => {
      const [x, y] = this.toPixel(end);
      return s("circle", { class: "open-end", cx: x, cy: y, r: 7 });
    });
    const crossings = (profile?.crossings ?? []).map((at) => {
      const [x, y] = this.toPixel(at);
      return s("path", { class: "crossing", d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10` });
    });
    return [...open, ...crossings];
  }

  #points(sketch) {
    if (store.ghost) return [];
    const isFew = sketch.primitives.length <= MANY;
    const numbers = [...store.marked, ...(store.hover?.numbers ?? [])];
    const related = new Set(numbers.flatMap((n) => sketch.constraints[n]?.refs ?? []).map((ref) => ref.join(":")));
    const dots = [];
    sketch.primitives.forEach((primitive, index) => {
      if (primitive.type === "point") return;
      for (const part of PARTS[primitive.type]) {
        const key = `${index}:${part}`;
        const isMarked = store.selection.has(key);
        const isHover = store.hover?.key === key || related.has(key);
        if (!isFew && !isMarked && !isHover) continue;
        const [cx, cy] = this.toPixel(pointOf(primitive, part));
        const classes = ["dot", part, isMarked && "selected", isHover && "hover"].filter(Boolean).join(" ");
        const r = isMarked || isHover ? 4.5 : part === "center" ? 1.8 : 2.6;
        dots.push(this.#element(`dot ${key}`, () => s("circle", { "data-key": key }), { class: classes, cx, cy, r }));
      }
    });
    return dots;
  }

  #annotations(sketch) {
    if (sketch.primitives.length > MANY) return { marks: [], dimensions: [] };
    const box = boundsOf(sketch.primitives);
    const view = { toPixel: this.toPixel, scale: this.scale, box };
    const { joints, glyphs, dimensions } = annotate(sketch, view, store.shows);
    const faulty = new Set([...(store.inspection?.conflicting ?? []), ...(store.inspection?.redundant ?? [])]);
    const classesOf = (kind, numbers) =>
      [
        kind,
        numbers.some((n) => store.marked.has(n)) && "selected",
        numbers.some((n) => store.hover?.numbers?.includes(n)) && "hover",
        !store.ghost && numbers.some((n) => faulty.has(n)) && "faulty",
      ].filter(Boolean).join(" ");
    // Several glyphs may stand for one constraint: their order is part of their key.
    const seen = new Map();
    const joint = ({ at: [cx, cy], numbers }) =>
      this.#element(`joint ${numbers}`, () => s("circle", { "data-numbers": numbers.join(), r: 3.4 }), { class: classesOf("joint", numbers), cx, cy });
    const mark = ({ type, at, numbers }) => {
      const key = `${type} ${numbers}`;
      seen.set(key, (seen.get(key) ?? 0) + 1);
      const look = { class: classesOf("glyph", numbers), transform: `translate(${at.map((value) => value.toFixed(1)).join(" ")})` };
      return this.#element(`glyph ${key} ${seen.get(key)}`, () => glyph(type, numbers, sketch), look);
    };
    return {
      marks: [...joints.map(joint), ...glyphs.map(mark)],
      dimensions: dimensions.map((dimension) => dimensionElement(dimension, classesOf("dimension", [dimension.number]), sketch)),
    };
  }

  #draft() {
    if (!this.draft) return [];
    const { primitives = [], snap, box, stroke } = this.draft;
    const elements = primitives.map((p) => s("path", { class: `curve draft ${p.type}`, d: pathOf(p, this.toPixel, this.scale) }));
    if (stroke) elements.push(strokePath(stroke));
    if (snap) {
      const [x, y] = this.toPixel(snap.at);
      if (snap.ref) elements.push(s("rect", { class: "snap", x: x - 6, y: y - 6, width: 12, height: 12 }));
      else elements.push(s("path", { class: snap.curve === undefined ? "cross" : "snap", d: `M${x - 6} ${y}h12M${x} ${y - 6}v12` }));
      const words = [snap.guide, snap.text].filter(Boolean).join("  ");
      if (words) elements.push(s("text", { class: "snap-text", x: x + 12, y: y - 10 }, words));
    }
    if (box) {
      const [[x0, y0], [x1, y1]] = box;
      const shape = { x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) };
      elements.push(s("rect", { class: x1 < x0 ? "box touching" : "box", ...shape }));
    }
    return elements;
  }
}

/** A stroke by hand, from pixels. */
const strokePath = (pixels) => s("path", { class: "stroke-by-hand", d: `M${pixels.map((at) => at.map((value) => value.toFixed(1)).join(" ")).join("L")}` });

/** Put elements in the place of those of a layer, if they are others. */
function put(layer, elements) {
  const { childNodes } = layer;
  const isSame = childNodes.length === elements.length && elements.every((element, index) => childNodes[index] === element);
  if (!isSame) layer.replaceChildren(...elements);
}

function glyph(type, numbers, sketch) {
  const title = numbers.map((number) => describeConstraint(sketch, sketch.constraints[number])).join("\n");
  return s(
    "g",
    { "data-numbers": numbers.join() },
    s("title", {}, title),
    s("rect", { x: -8, y: -8, width: 16, height: 16, rx: 3 }),
    s("use", { href: `#i-c-${type}`, x: -7, y: -7, width: 14, height: 14 }),
  );
}

function dimensionElement({ number, text, at: [x, y], paths, width }, classes, sketch) {
  const label = `${describeConstraint(sketch, sketch.constraints[number])}. Edit`;
  return s(
    "g",
    { class: classes, "data-number": number, "data-numbers": number, role: "button", tabindex: 0, "aria-label": label },
    s("path", { d: paths.join("") }),
    s("rect", { x: x - width / 2, y: y - 9, width, height: 18, rx: 3 }),
    s("text", { x, y: y + 4.5 }, text),
  );
}

/** "x 12.5  y 30 mm": the position under the pointer. */
export function formatPosition(at, scale, units) {
  const step = 1 / scale;
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step))));
  const [x, y] = at.map((value) => formatNumber(Number(value.toFixed(digits)), 9));
  return `x ${x}   y ${y}${units ? ` ${units}` : ""}`;
}

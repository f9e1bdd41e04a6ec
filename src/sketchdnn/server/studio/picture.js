// Small pictures of sketches: for cards, tiles and the animation.

import { boundsOf, pathOf } from "./geometry.js";
import { s } from "./dom.js";
import { describe } from "./sketch.js";

const SIDE = 160;

/** A view of a box in a square picture of `side` pixels: {toPixel, scale}. */
export function viewOf(box, side = SIDE, margin = 0.09) {
  const inner = side * (1 - 2 * margin);
  const scale = box && box.size > 0 ? inner / box.size : 1;
  const [cx, cy] = box?.center ?? [0, 0];
  return { scale, toPixel: ([x, y]) => [side / 2 + (x - cx) * scale, side / 2 - (y - cy) * scale] };
}

/**
 * The picture of a sketch.
 * With `numGiven` the primitives after that number look added; `marks` are positions to mark as open;
 * `box` is the box to show, so that several pictures have the same scale. Without a label it is hidden from screen readers.
 */
export function picture(sketch, { numGiven = Infinity, marks = [], box = null, label = describe(sketch) } = {}) {
  const view = viewOf(box ?? boundsOf(sketch.primitives));
  const curves = sketch.primitives.map((primitive, index) => {
    const classes = ["stroke"];
    if (primitive.construction) classes.push("construction");
    if (index >= numGiven) classes.push("added");
    return s("path", { class: classes.join(" "), d: pathOf(primitive, view.toPixel, view.scale) });
  });
  const rings = marks.map((at) => {
    const [cx, cy] = view.toPixel(at);
    return s("circle", { class: "open-end", cx, cy, r: 5 });
  });
  const naming = label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" };
  return s("svg", { class: "picture", viewBox: `0 0 ${SIDE} ${SIDE}`, ...naming }, curves, rings);
}

/** The box around several sketches. */
export const boxOf = (...sketches) => boundsOf(sketches.flatMap((sketch) => sketch.primitives));

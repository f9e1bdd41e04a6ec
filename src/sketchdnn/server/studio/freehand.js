// Strokes drawn by hand on the canvas: the bar above the canvas, and the strokes as a picture to trace.

import { boundsOf } from "./geometry.js";
import { byId, plural } from "./dom.js";
import { addSketch, scaled } from "./sketch.js";
import { store } from "./store.js";

// The picture of the strokes, in pixels: its larger side without the margin, the margin and the width of a stroke.
const SIDE = 900;
const MARGIN = 60;
const WIDTH = 7;

/** Show the bar while there are strokes or the tool is chosen; `trace` is called to trace them. */
export function setUpFreehand(trace) {
  byId("freehand-trace").addEventListener("click", trace);
  byId("freehand-clear").addEventListener("click", () => {
    store.setStrokes([]);
    byId("canvas").focus({ preventScroll: true });
  });
  const show = () => {
    const count = store.strokes.length;
    byId("freehand-bar").hidden = !count && store.tool !== "freehand";
    byId("freehand-count").textContent = count ? plural(count, "stroke") : "Draw by hand";
    for (const name of ["trace", "clear"]) byId(`freehand-${name}`).disabled = !count;
  };
  store.on("committed tool", show);
  show();
}

/** The strokes as a PNG, and the map from its pixels, whose centers are whole numbers, to the sketch. */
export async function pictureOf(strokes) {
  const box = boundsOf(strokes.flat().map((at) => ({ type: "point", at })));
  const scale = SIDE / (box.size || 1);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(box.width * scale) + 2 * MARGIN;
  canvas.height = Math.ceil(box.height * scale) + 2 * MARGIN;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  Object.assign(pen, { strokeStyle: "black", lineWidth: WIDTH, lineCap: "round", lineJoin: "round" });
  const [left, top] = [box.low[0], box.high[1]];
  for (const stroke of strokes) {
    pen.beginPath();
    for (const [x, y] of stroke) pen.lineTo((x - left) * scale + MARGIN, (top - y) * scale + MARGIN);
    pen.stroke();
  }
  const picture = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const toSketch = ([x, y]) => [left + (x + 0.5 - MARGIN) / scale, top - (y + 0.5 - MARGIN) / scale];
  return { picture, toSketch };
}

/**
 * The sketch with the traced strokes added where they were drawn: {sketch, place(sketch)}.
 * Tracing turns a drawing upright, so that only position and size are taken from the strokes.
 */
export function placeStrokes(sketch, answer, toSketch) {
  const source = (at) => toSketch(apply(answer.to_source, apply(answer.to_picture, at)));
  const shift = source([0, 0]);
  const [x, y] = source([1, 0]);
  const factor = Math.hypot(x - shift[0], y - shift[1]);
  const traced = scaled(answer.sketch, factor, shift);
  return { sketch: addSketch(sketch, traced), factor, shift };
}

/** A position mapped by a matrix of homogeneous coordinates. */
function apply(matrix, [x, y]) {
  const [u, v, w] = matrix.map((row) => row[0] * x + row[1] * y + row[2]);
  return [u / w, v / w];
}

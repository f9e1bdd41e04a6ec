// The panel "Trace": a picture of a drawing, or strokes by hand, become a constrained sketch.

import { tracePicture } from "./api.js";
import { attempt, byId, h, plural, refill, s, showMessage } from "./dom.js";
import { pictureOf, placeStrokes, setUpFreehand } from "./freehand.js";
import { boundsOf, distance, lengthOf, pathOf, pointOf } from "./geometry.js";
import { formatNumber, parseLength } from "./quantity.js";
import { describe, nameOf, normalized, scaled } from "./sketch.js";
import { store } from "./store.js";

// Pictures by name and by type. Others that no server reads get its sentence; DXF has a type of pictures, too.
const PICTURE = /\.(png|jpe?g|jfif|bmp|tiff?|pdf|webp|gif|heic|heif)$/i;
const PICTURE_TYPE = /^image\/(png|jpeg|bmp|tiff|webp|gif|heic|heif)$/;
const UNITS = "mm";
const SIZE = "100";
const input = byId("picture");
const form = byId("trace-form");
let running = null;
/** Most bytes of a picture that the server takes. */
let mostBytes = Infinity;

export function setUpTracing() {
  for (const id of ["trace-picture", "choose-picture"]) byId(id).addEventListener("click", choosePicture);
  input.addEventListener("change", () => {
    if (input.files.length) traceFile(input.files[0]);
    input.value = "";
  });
  byId("draw-freehand").addEventListener("click", () => {
    store.setTool("freehand");
    if (matchMedia("(max-width: 760px)").matches) byId("tab-trace").click();
    byId("canvas").focus({ preventScroll: true });
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (store.underlay?.again) store.underlay.again();
  });
  byId("scale-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setScale();
  });
  byId("show-picture").addEventListener("change", () => store.toggle("picture"));
  addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find(isPicture);
    if (!file || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    traceFile(file);
  });
  setUpFreehand(traceStrokes);
  store.on("committed", showResult);
  store.on("committed selection", showScale);
  showResult();
  showScale();
}

/** What the server takes: the answer of /info. */
export function takeLimits(info) {
  mostBytes = info.limits.upload_bytes;
}

/** Whether a file is traced, and not read as a drawing. */
export const isPicture = (file) => PICTURE.test(file.name) || PICTURE_TYPE.test(file.type);

/** Open the panel and ask for a picture. */
export function choosePicture() {
  openPanel();
  input.click();
}

function openPanel() {
  store.setView("sketch");
  const tab = byId("tab-trace");
  if (tab.getAttribute("aria-selected") !== "true" || byId("side").dataset.open !== "true") tab.click();
}

/** Trace a file; the result is opened as a sketch of its own. */
export async function traceFile(file) {
  openPanel();
  if (file.size > mostBytes) {
    const [own, most] = [file.size, mostBytes].map((bytes) => formatNumber(bytes / 2 ** 20, 3));
    showMessage(`${file.name} has ${own} MB, and at most ${most} MB are taken; save it with fewer pixels.`, "error");
    return;
  }
  const answer = await ask(file, file.name, () => ({ size: parseLength(form.elements.size.value.trim() || SIZE, UNITS), page: form.elements.page.value || 1 }));
  if (!answer) return;
  const sketch = normalized(answer.sketch);
  store.open(sketch, file.name, underlayOf(answer, sketch, { again: () => traceFile(file) }));
  showMessage(`${file.name}: ${describe(sketch)}. Undo brings the sketch before back.`);
}

/** Trace the strokes on the canvas; what they show is added to the sketch where they are. */
export async function traceStrokes() {
  const { strokes } = store;
  if (!strokes.length) {
    showMessage("There are no strokes to trace: draw by hand first.", "error");
    return;
  }
  const { picture, toSketch } = await pictureOf(strokes);
  const control = byId("freehand-trace");
  control.disabled = true;
  const answer = await ask(picture, plural(strokes.length, "stroke"), () => ({}));
  control.disabled = !store.strokes.length;
  if (!answer || store.strokes !== strokes) return;
  const traced = normalized(answer.sketch);
  const { sketch, factor, shift } = placeStrokes(store.sketch, { ...answer, sketch: traced }, toSketch);
  const underlay = underlayOf(answer, traced, { factor, shift, units: sketch.units });
  store.commit(sketch, store.name, store.sketch, { strokes: [], underlay });
  store.setTool("select");
  openResult();
  showMessage(`The strokes are traced: ${describe(traced)}. Undo brings them back.`);
}

/** On a phone the panel would hide what was drawn. */
function openResult() {
  if (!matchMedia("(max-width: 760px)").matches) openPanel();
}

/** The server's answer, or undefined after an error, or if another picture came after. */
async function ask(picture, name, makeOptions) {
  running?.abort();
  const own = new AbortController();
  running = own;
  byId("trace-result").setAttribute("aria-busy", "true");
  showMessage(`Tracing ${name} …`, "busy");
  const { constrain, close } = form.elements;
  const shared = { constrain: constrain.checked, close: close.checked, units: UNITS };
  const answer = await attempt(() => tracePicture(picture, { ...shared, ...makeOptions() }, own.signal));
  if (running !== own) return undefined;
  running = null;
  byId("trace-result").setAttribute("aria-busy", "false");
  return answer;
}

/**
 * The straightened picture under the sketch, and what the panel shows of the result.
 * `corner` is its upper left corner and `step` the side of a pixel, both in the coordinates of the sketch in `units`.
 */
function underlayOf(answer, traced, { factor = 1, shift = [0, 0], units = UNITS, again = null }) {
  const { picture, to_picture: matrix, is_extrudable: isExtrudable, dof, distance: gap, warning } = answer;
  const [[a, , x], [, d, y]] = matrix;
  const corner = [(-0.5 - x) / a, (-0.5 - y) / d].map((value, axis) => value * factor + shift[axis]);
  const href = `data:${picture.media_type};base64,${picture.data}`;
  return { href, width: picture.width, height: picture.height, corner, step: factor / a, units, again, traced, matrix, isExtrudable, dof, gap, warning };
}

/** The result over the picture, and what it is. */
function showResult() {
  const { underlay } = store;
  for (const id of ["trace-result", "scale-section"]) byId(id).hidden = !underlay;
  byId("trace-again").hidden = !underlay?.again;
  if (!underlay || byId("trace-figure").dataset.shown === underlay.href) return;
  byId("trace-figure").dataset.shown = underlay.href;
  const { traced, width, height, isExtrudable, dof, gap, warning } = underlay;
  const [[scale, , left], [, down, top]] = underlay.matrix;
  const toPixel = ([x, y]) => [scale * x + left, down * y + top];
  const curves = traced.primitives.map((p) => s("path", { class: p.construction ? "construction" : "", d: pathOf(p, toPixel, scale) }));
  const what = describe(traced);
  refill(
    byId("trace-figure"),
    s(
      "svg",
      { class: "overlay", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `The result over the picture: ${what}` },
      s("image", { href: underlay.href, width, height, x: -0.5, y: -0.5 }),
      curves,
    ),
  );
  const freedom = `${dof} ${dof === 1 ? "degree" : "degrees"} of freedom`;
  refill(
    byId("trace-text"),
    h("b", {}, what.charAt(0).toUpperCase() + what.slice(1)),
    h("span", { class: `badge ${isExtrudable ? "good" : ""}` }, isExtrudable ? "closed, can be extruded" : "not closed"),
    h("span", { class: "muted" }, `${freedom}; strokes are ${formatNumber(100 * gap, 2)} % of the size from the curves`),
    warning ? h("span", { class: "warning" }, warning) : null,
  );
}

/** What is measured to set the scale: what is selected, or the larger side. */
function knownMeasure() {
  const { sketch } = store;
  const refs = store.selectedRefs();
  if (refs.length === 1 && refs[0][1] === "whole") {
    const [index] = refs[0];
    const primitive = sketch.primitives[index];
    if (primitive.type === "line") return { name: `Length of ${nameOf(sketch, index)}`, value: lengthOf(primitive) };
    if (primitive.type === "circle") return { name: `Diameter of ${nameOf(sketch, index)}`, value: 2 * primitive.radius };
    if (primitive.type === "arc") return { name: `Radius of ${nameOf(sketch, index)}`, value: primitive.radius };
  }
  const points = refs.map(([index, part]) => pointOf(sketch.primitives[index], part)).filter(Boolean);
  if (refs.length === 2 && points.length === 2) return { name: "Distance of the two points", value: distance(...points) };
  return { name: "Larger side of the sketch", value: boundsOf(sketch.primitives)?.size ?? 0 };
}

function showScale() {
  const { name, value } = knownMeasure();
  byId("scale-name").textContent = name + (store.sketch.units ? `, ${store.sketch.units}` : "");
  byId("scale-value").value = value > 0 ? formatNumber(value, 5) : "";
}

/** Scale the sketch as a whole so that what is measured has the size in the field; one step of the history. */
function setScale() {
  const field = byId("scale-value");
  const { name, value } = knownMeasure();
  let wanted;
  try {
    wanted = parseLength(field.value, store.sketch.units);
  } catch (error) {
    showMessage(error.message, "error");
    field.select();
    return;
  }
  const factor = wanted / value;
  if (field.value.trim() === formatNumber(value, 5) || !(value > 0) || !Number.isFinite(factor)) return;
  const { underlay } = store;
  const moved = underlay && { ...underlay, corner: underlay.corner.map((each) => each * factor), step: underlay.step * factor };
  const strokes = store.strokes.map((stroke) => stroke.map(([x, y]) => [x * factor, y * factor]));
  store.commit(scaled(store.sketch, factor), store.name, store.sketch, { strokes, underlay: moved });
  store.emit("scaled");
  showMessage(`${name}: ${formatNumber(wanted, 5)}${store.sketch.units ? ` ${store.sketch.units}` : ""}. The whole sketch is scaled.`);
}

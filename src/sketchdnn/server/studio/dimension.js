// Editing a dimension where it is drawn.

import { byId, showMessage } from "./dom.js";
import { formatNumber, parseAngle, parseLength } from "./quantity.js";
import { describeConstraint } from "./sketch.js";
import { setDimension } from "./solving.js";
import { store } from "./store.js";

// Significant digits of the value that is edited.
const DIGITS = 8;
const field = byId("dimension");
let editing = null;

export function setUpDimension(canvas) {
  field.addEventListener("keydown", async (event) => {
    event.stopPropagation();
    if (event.key === "Escape") close();
    if (event.key === "Enter") {
      event.preventDefault();
      await finish();
    }
  });
  field.addEventListener("blur", () => editing !== null && finish());
  canvas.svg.addEventListener("keydown", (event) => {
    const dimension = event.target.closest?.(".dimension");
    if (dimension && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      event.stopPropagation();
      editDimension(Number(dimension.dataset.number));
    }
  });
}

/** Open the field of dimension `number` over its text, or in the middle where it is not drawn. */
export function editDimension(number) {
  const constraint = store.sketch.constraints[number];
  if (!constraint) return;
  const drawn = document.querySelector(`#canvas .dimension[data-number="${number}"] rect`);
  const frame = byId("stage").getBoundingClientRect();
  const box = drawn?.getBoundingClientRect();
  const [x, y] = box ? [box.x + box.width / 2 - frame.x, box.y + box.height / 2 - frame.y] : [frame.width / 2, frame.height / 2];
  editing = number;
  field.style.left = `${Math.min(Math.max(x, 60), frame.width - 60)}px`;
  field.style.top = `${Math.min(Math.max(y, 20), frame.height - 20)}px`;
  const isAngle = constraint.type === "angle";
  field.value = formatNumber(isAngle ? (constraint.value * 180) / Math.PI : Math.abs(constraint.value), DIGITS);
  field.setAttribute("aria-label", `${describeConstraint(store.sketch, constraint)}. New value${isAngle ? " in degrees" : ""}`);
  field.hidden = false;
  field.focus();
  field.select();
}

function close() {
  const number = editing;
  editing = null;
  field.hidden = true;
  (document.querySelector(`#canvas .dimension[data-number="${number}"]`) ?? byId("canvas")).focus({ preventScroll: true });
}

async function finish() {
  const number = editing;
  const constraint = store.sketch.constraints[number];
  if (number === null || !constraint) return;
  let value;
  try {
    value = constraint.type === "angle" ? parseAngle(field.value) : parseLength(field.value, store.sketch.units);
  } catch (error) {
    showMessage(error.message, "error");
    field.select();
    return;
  }
  close();
  // A file may count a distance to the other side: the sign stays. What was only looked at stays to the last digit.
  const shown = formatNumber(constraint.type === "angle" ? (constraint.value * 180) / Math.PI : Math.abs(constraint.value), DIGITS);
  if (field.value.trim() === shown) return;
  await setDimension(number, constraint.value < 0 && constraint.type !== "angle" ? -value : value);
}

// Requests to the solver: constraints that are added or edited, and the inspection of the sketch.

import { post } from "./api.js";
import { attempt, hideMessage, showMessage } from "./dom.js";
import { connected, merged, replaceConstraint, select } from "./sketch.js";
import { relation } from "./relations.js";
import { store } from "./store.js";

// The solver takes this many primitives at a time.
const LIMIT = 200;
const INSPECT_LIMIT = 2000;
const INSPECT_DELAY = 60;

let inspectTimer = 0;
let inspectNumber = 0;

export function setUpSolving() {
  store.on("committed", () => {
    clearTimeout(inspectTimer);
    inspectTimer = setTimeout(inspect, INSPECT_DELAY);
  });
}

/** Ask for degrees of freedom, open ends and faults; only the newest answer counts. */
async function inspect() {
  const { sketch } = store;
  inspectNumber += 1;
  const own = inspectNumber;
  if (!sketch.primitives.length || sketch.primitives.length > INSPECT_LIMIT) return;
  const answer = await attempt(() => post("/inspect", { sketch }));
  if (answer && own === inspectNumber && store.sketch === sketch) store.setInspection(answer);
}

/** Solve a sketch whose constraint number `changed` is new; null with an error message if it cannot hold. */
async function solved(sketch, changed) {
  if (sketch.primitives.length <= LIMIT) {
    const answer = await post("/solve", { sketch, changed });
    return accept(answer, () => answer.sketch);
  }
  const own = sketch.constraints[changed].refs.filter((ref) => ref.length === 2).map((ref) => ref[0]);
  const members = connected(sketch, own);
  const part = select(sketch, members);
  const isOf = (constraint) => constraint.refs.every((ref) => ref.length === 1 || members.includes(ref[0]));
  const number = sketch.constraints.slice(0, changed).filter(isOf).length;
  const answer = await post("/solve", { sketch: part, changed: number });
  return accept(answer, () => merged(sketch, members, answer.sketch));
}

function accept(answer, result) {
  if (!answer.message) return result();
  showMessage(answer.message, "error");
  return null;
}

/** Add constraints of a type to the selection. Returns the number of the first one, or null. */
export async function addRelation(type) {
  const { sketch } = store;
  const made = relation(sketch, store.selectedRefs(), type);
  if (!made) return null;
  hideMessage();
  let result = sketch;
  for (const constraint of made) {
    const next = { ...result, constraints: [...result.constraints, constraint] };
    result = await attempt(() => solved(next, next.constraints.length - 1));
    if (!result) return null;
  }
  if (store.sketch !== sketch) return null;
  store.commit(result);
  return sketch.constraints.length;
}

/** Give a dimension another value. Returns whether it holds. */
export async function setDimension(number, value) {
  const { sketch } = store;
  const constraint = sketch.constraints[number];
  if (constraint.value === value) return true;
  hideMessage();
  const next = replaceConstraint(sketch, number, { ...constraint, value });
  const result = await attempt(() => solved(next, number));
  if (!result || store.sketch !== sketch) return false;
  store.commit(result);
  return true;
}

// Sketches as values: every function returns a new sketch and leaves its input alone.

import { PARTS, distance, angleOf, pointOf, lengthOf, sweepOf } from "./geometry.js";
import { MM_PER_UNIT, formatAngle, formatNumber } from "./quantity.js";

export const EMPTY = Object.freeze({ primitives: [], constraints: [], units: "mm" });
export const LENGTHS = new Set(["distance", "horizontal_distance", "vertical_distance", "length", "radius", "diameter"]);
export const isDimension = (constraint) => (LENGTHS.has(constraint.type) || constraint.type === "angle") && constraint.value != null;
const OUTSIDE = { origin: "the origin", x_axis: "the x axis", y_axis: "the y axis", external: "external geometry" };

/** The sketch with all of its fields. */
export const normalized = (sketch) => ({ ...sketch, primitives: sketch.primitives ?? [], constraints: sketch.constraints ?? [], units: sketch.units ?? null });

export const isOutside = (ref) => ref.length === 1;

/** The position that a reference names; null for a whole curve or an axis. */
export function refPoint(sketch, ref) {
  if (isOutside(ref)) return ref[0] === "origin" ? [0, 0] : null;
  const primitive = sketch.primitives[ref[0]];
  return primitive ? pointOf(primitive, ref[1]) : null;
}

export function addPrimitives(sketch, primitives, constraints = []) {
  return { ...sketch, primitives: [...sketch.primitives, ...primitives], constraints: [...sketch.constraints, ...constraints] };
}

const renumbered = (constraint, numberOf) => ({
  ...constraint,
  refs: constraint.refs.map((ref) => (isOutside(ref) ? ref : [numberOf.get(ref[0]), ref[1]])),
});

/** Some of the primitives, in order, and the constraints that refer to no others. */
export function select(sketch, indices) {
  const numberOf = new Map(indices.map((index, number) => [index, number]));
  const isKept = (constraint) => constraint.refs.every((ref) => isOutside(ref) || numberOf.has(ref[0]));
  const constraints = sketch.constraints.filter(isKept).map((constraint) => renumbered(constraint, numberOf));
  // Unknown keys of primitives are numbered, so that they would go to the wrong ones: they are left out.
  return { units: sketch.units, primitives: indices.map((index) => sketch.primitives[index]), constraints };
}

export function removePrimitives(sketch, indices) {
  const gone = new Set(indices);
  return select(sketch, sketch.primitives.map((_, index) => index).filter((index) => !gone.has(index)));
}

export function removeConstraints(sketch, numbers) {
  const gone = new Set(numbers);
  return { ...sketch, constraints: sketch.constraints.filter((_, number) => !gone.has(number)) };
}

/** Turn primitives to construction geometry; back, if all of them are it. */
export function toggleConstruction(sketch, indices) {
  const chosen = new Set(indices);
  const value = !indices.every((index) => sketch.primitives[index].construction);
  return { ...sketch, primitives: sketch.primitives.map((p, index) => (chosen.has(index) ? { ...p, construction: value } : p)) };
}

export function replaceConstraint(sketch, number, constraint) {
  return { ...sketch, constraints: sketch.constraints.map((each, index) => (index === number ? constraint : each)) };
}

/** The primitives that constraints join to the given ones, directly or through others; in order. */
export function connected(sketch, indices) {
  const groups = sketch.constraints.map((c) => c.refs.filter((ref) => !isOutside(ref)).map((ref) => ref[0]));
  const found = new Set(indices);
  for (let grown = true; grown; ) {
    grown = false;
    for (const group of groups) {
      if (!group.some((index) => found.has(index))) continue;
      for (const index of group) {
        if (!found.has(index)) [grown] = [Boolean(found.add(index))];
      }
    }
  }
  return [...found].sort((a, b) => a - b);
}

/** The sketch with the primitives `indices` replaced by those of `part`, in order. */
export function merged(sketch, indices, part) {
  const primitives = [...sketch.primitives];
  indices.forEach((index, number) => (primitives[index] = part.primitives[number]));
  return { ...sketch, primitives };
}

/** The same real size in other units; a sketch without units is taken to be in them. */
export function inUnits(sketch, units) {
  return { ...scaled(sketch, unitFactor(sketch.units, units)), units: units || null };
}

/** How many of one unit the other one is; 1 where one of them is not known. */
export const unitFactor = (from, to) => (from && to ? MM_PER_UNIT[from] / MM_PER_UNIT[to] : 1);

/** The sketch enlarged about the origin, with its dimensions, and then moved. */
export function scaled(sketch, factor, [dx, dy] = [0, 0]) {
  if (factor === 1 && dx === 0 && dy === 0) return sketch;
  const place = (point) => [point[0] * factor + dx, point[1] * factor + dy];
  const primitives = sketch.primitives.map((primitive) => {
    const changed = { ...primitive };
    for (const key of ["start", "end", "center", "at"]) if (changed[key]) changed[key] = place(changed[key]);
    if ("radius" in changed) changed.radius *= factor;
    return changed;
  });
  const constraints = sketch.constraints.map((c) => (LENGTHS.has(c.type) && c.value != null ? { ...c, value: c.value * factor } : c));
  return { ...sketch, primitives, constraints };
}

/** A sketch with the primitives and constraints of another one added. */
export function addSketch(sketch, other) {
  const first = sketch.primitives.length;
  const numberOf = new Map(other.primitives.map((_, index) => [index, first + index]));
  return addPrimitives(sketch, other.primitives, other.constraints.map((constraint) => renumbered(constraint, numberOf)));
}

/** What a dimension measures now, in the units of the sketch or radians; null if it cannot be measured. */
export function measure(sketch, constraint) {
  const [first, second] = constraint.refs;
  const primitive = isOutside(first) ? null : sketch.primitives[first[0]];
  if (constraint.type === "radius") return primitive?.radius ?? null;
  if (constraint.type === "diameter") return primitive?.radius ? 2 * primitive.radius : null;
  if (!second) {
    if (!primitive) return null;
    if (constraint.type === "angle") return primitive.type === "arc" ? sweepOf(primitive) : angleOf(primitive.start, primitive.end);
    if (constraint.type === "horizontal_distance") return Math.abs(primitive.end[0] - primitive.start[0]);
    if (constraint.type === "vertical_distance") return Math.abs(primitive.end[1] - primitive.start[1]);
    return lengthOf(primitive);
  }
  const [a, b] = constraint.refs.map((ref) => anchor(sketch, ref));
  if (constraint.type === "angle") {
    const [u, v] = constraint.refs.map((ref) => sketch.primitives[ref[0]]);
    const turn = Math.abs(angleOf(u.start, u.end) - angleOf(v.start, v.end)) % (2 * Math.PI);
    return Math.min(turn, 2 * Math.PI - turn);
  }
  if (a && b) {
    if (constraint.type === "horizontal_distance") return Math.abs(a[0] - b[0]);
    if (constraint.type === "vertical_distance") return Math.abs(a[1] - b[1]);
    return distance(a, b);
  }
  const line = lineOf(sketch, first) ?? lineOf(sketch, second);
  const point = a ?? b ?? lineOf(sketch, second)?.start;
  return line && point ? offsetFrom(line, point) : null;
}

/** The point of a reference, the center of a circle or an arc that it names as a whole; null for lines. */
export function anchor(sketch, ref) {
  return refPoint(sketch, ref) ?? (isOutside(ref) ? null : (sketch.primitives[ref[0]]?.center ?? null));
}

/** The line that a reference names as a whole, an axis included. */
export function lineOf(sketch, ref) {
  if (ref[0] === "x_axis") return { start: [0, 0], end: [1, 0] };
  if (ref[0] === "y_axis") return { start: [0, 0], end: [0, 1] };
  const primitive = isOutside(ref) ? null : sketch.primitives[ref[0]];
  return primitive?.type === "line" && ref[1] === "whole" ? primitive : null;
}

/** The distance of a point from a line without ends. */
function offsetFrom(line, point) {
  const [dx, dy] = [line.end[0] - line.start[0], line.end[1] - line.start[1]];
  return Math.abs(dx * (point[1] - line.start[1]) - dy * (point[0] - line.start[0])) / (Math.hypot(dx, dy) || 1);
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** "line 3": primitives are numbered from 1 on the screen. */
export const nameOf = (sketch, index) => `${sketch.primitives[index]?.type ?? "primitive"} ${index + 1}`;

function describeRef(sketch, ref) {
  if (isOutside(ref)) return OUTSIDE[ref[0]];
  const name = nameOf(sketch, ref[0]);
  return ref[1] === "whole" || ref[1] === "point" ? name : `${ref[1]} of ${name}`;
}

export const labelOf = (constraint) =>
  capital(constraint.type === "other" ? (constraint.name ?? "other") : constraint.type.replaceAll("_", " "));

/** The value of a dimension as text: "12.5", "R 4", "⌀ 8", "45°". */
export function valueText(constraint) {
  if (constraint.type === "angle") return formatAngle(constraint.value);
  const prefix = constraint.type === "radius" ? "R " : constraint.type === "diameter" ? "⌀ " : "";
  return prefix + formatNumber(Math.abs(constraint.value));
}

/** A sentence for lists and screen readers. */
export function describeConstraint(sketch, constraint) {
  const name = constraint.name && constraint.type !== "other" ? ` (${constraint.name})` : "";
  const value = isDimension(constraint) ? ` ${valueText(constraint)}${constraint.type === "angle" ? "" : ` ${sketch.units ?? ""}`.trimEnd()}` : "";
  return `${labelOf(constraint)}${name}${value}: ${constraint.refs.map((ref) => describeRef(sketch, ref)).join(", ")}`;
}

/** "8 lines, 2 circles", with the number of construction primitives. */
export function describe(sketch) {
  const count = { line: 0, circle: 0, arc: 0, point: 0 };
  let construction = 0;
  for (const primitive of sketch.primitives) {
    count[primitive.type] += 1;
    construction += primitive.construction ? 1 : 0;
  }
  const words = Object.entries(count).filter(([, n]) => n).map(([kind, n]) => `${n} ${kind}${n === 1 ? "" : "s"}`);
  return words.length ? words.join(", ") + (construction ? ` (${construction} construction)` : "") : "empty sketch";
}

/** All points that a drawing tool can snap to: [{ref, at}], ends before centers. */
export function snapPoints(sketch) {
  const found = [];
  sketch.primitives.forEach((primitive, index) => {
    for (const part of PARTS[primitive.type]) found.push({ ref: [index, part], at: pointOf(primitive, part) });
  });
  return [...found, { ref: ["origin"], at: [0, 0] }];
}

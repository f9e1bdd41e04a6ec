// Which constraints a selection allows, and the constraints that they are.

import { measure } from "./sketch.js";

const POINTS = new Set(["start", "end", "center", "point"]);

/** The selected references by what they are: points, lines, circles and arcs, in the order of selection. */
function sort(sketch, refs) {
  const sorted = { points: [], lines: [], rounds: [] };
  for (const ref of refs) {
    const { type } = sketch.primitives[ref[0]];
    if (POINTS.has(ref[1])) sorted.points.push(ref);
    else if (type === "line") sorted.lines.push(ref);
    else if (type === "point") sorted.points.push([ref[0], "point"]);
    else sorted.rounds.push(ref);
  }
  return sorted;
}

const each = (type, refs) => refs.map((ref) => ({ type, refs: [ref] }));

/** Each offers constraints for {points, lines, rounds}, or null where the selection does not fit. */
const RULES = {
  coincident: ({ points, lines, rounds }) => {
    const curves = [...lines, ...rounds];
    if (points.length >= 2 && !curves.length) return [{ type: "coincident", refs: points }];
    return points.length === 1 && curves.length === 1 ? [{ type: "point_on_curve", refs: [points[0], curves[0]] }] : null;
  },
  horizontal: (chosen) => level("horizontal", chosen),
  vertical: (chosen) => level("vertical", chosen),
  parallel: ({ points, lines, rounds }) => (lines.length >= 2 && !points.length && !rounds.length ? [{ type: "parallel", refs: lines }] : null),
  perpendicular: ({ points, lines, rounds }) =>
    lines.length === 2 && !points.length && !rounds.length ? [{ type: "perpendicular", refs: lines }] : null,
  tangent: ({ points, lines, rounds }) =>
    rounds.length >= 1 && lines.length + rounds.length === 2 && !points.length ? [{ type: "tangent", refs: [...lines, ...rounds] }] : null,
  equal: ({ points, lines, rounds }) => {
    if (points.length || (lines.length && rounds.length)) return null;
    const refs = [...lines, ...rounds];
    return refs.length >= 2 ? [{ type: "equal", refs }] : null;
  },
  concentric: ({ points, lines, rounds }) => (rounds.length >= 2 && !points.length && !lines.length ? [{ type: "concentric", refs: rounds }] : null),
  collinear: ({ points, lines, rounds }) => (lines.length >= 2 && !points.length && !rounds.length ? [{ type: "collinear", refs: lines }] : null),
  midpoint: ({ points, lines, rounds }) =>
    points.length === 1 && lines.length === 1 && !rounds.length ? [{ type: "midpoint", refs: [points[0], lines[0]] }] : null,
  symmetric: ({ points, lines, rounds }) =>
    points.length === 2 && lines.length === 1 && !rounds.length ? [{ type: "symmetric", refs: [...points, lines[0]] }] : null,
  fix: ({ points, lines, rounds }) => (points.length + lines.length + rounds.length ? each("fix", [...points, ...lines, ...rounds]) : null),
  distance: ({ points, lines, rounds }) => {
    if (rounds.length) return null;
    if (lines.length === 1 && !points.length) return [{ type: "length", refs: lines }];
    const refs = [...points, ...lines];
    return refs.length === 2 ? [{ type: "distance", refs }] : null;
  },
  horizontal_distance: (chosen) => apart("horizontal_distance", chosen),
  vertical_distance: (chosen) => apart("vertical_distance", chosen),
  radius: ({ points, lines, rounds }) => (rounds.length && !points.length && !lines.length ? each("radius", rounds) : null),
  diameter: ({ points, lines, rounds }) => (rounds.length && !points.length && !lines.length ? each("diameter", rounds) : null),
  angle: ({ points, lines, rounds }) => (lines.length >= 1 && lines.length <= 2 && !points.length && !rounds.length ? [{ type: "angle", refs: lines }] : null),
};

function level(type, { points, lines, rounds }) {
  if (rounds.length) return null;
  if (lines.length && !points.length) return each(type, lines);
  return points.length === 2 && !lines.length ? [{ type, refs: points }] : null;
}

function apart(type, { points, lines, rounds }) {
  if (rounds.length) return null;
  if (lines.length === 1 && !points.length) return [{ type, refs: [[lines[0][0], "start"], [lines[0][0], "end"]] }];
  return points.length === 2 && !lines.length ? [{ type, refs: points }] : null;
}

export const RELATIONS = Object.keys(RULES);
export const DIMENSIONS = ["distance", "horizontal_distance", "vertical_distance", "radius", "diameter", "angle"];

/** What to select for each constraint. */
export const NEEDS = {
  coincident: "two or more points, or a point and a curve",
  horizontal: "lines, or two points",
  vertical: "lines, or two points",
  parallel: "two or more lines",
  perpendicular: "two lines",
  tangent: "a line and an arc or circle, or two of these",
  equal: "lines, or circles and arcs",
  concentric: "circles and arcs",
  collinear: "two or more lines",
  midpoint: "a point and a line",
  symmetric: "two points and a line",
  fix: "what is to stay in place",
  distance: "a line, two points, a point and a line, or two lines",
  horizontal_distance: "a line or two points",
  vertical_distance: "a line or two points",
  radius: "circles or arcs",
  diameter: "circles or arcs",
  angle: "one or two lines",
};

/** The constraints of a type that a selection allows, dimensions with what they measure now; null if none. */
export function relation(sketch, refs, type) {
  const made = RULES[type](sort(sketch, refs));
  if (!made || !DIMENSIONS.includes(type)) return made;
  const measured = made.map((constraint) => ({ ...constraint, value: measure(sketch, constraint) }));
  return measured.every((constraint) => Number.isFinite(constraint.value)) ? measured : null;
}

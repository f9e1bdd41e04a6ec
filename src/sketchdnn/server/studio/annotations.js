// Where constraint glyphs and dimensions are drawn, in pixels. Places are taken greedily: what finds no free place
// at this zoom is left out, and is in the list of constraints all the same.

import { add, angleOf, direction, distance, halfway, headingAtHalf, meetingPoint, middleOf, pointOf, sweepOf } from "./geometry.js";
import { LENGTHS, anchor, isDimension, isOutside, lineOf, refPoint, valueText } from "./sketch.js";

const GLYPH = 16;
const OFFSET = 15;
const TEXT_WIDTH = 7;
const TEXT_HEIGHT = 17;
const ARROW = 8;
const DIMENSION_OFFSET = 26;
const ROW = 22;
// A dimension goes outside of the sketch if it is nearer to its rim than this share of its extent.
const NEAR_RIM = 0.36;
const JOINED = 4;

/** The boxes of annotations that have been placed. */
class TakenBoxes {
  #boxes = [];

  isFree([x, y], width, height) {
    return this.#boxes.every((b) => Math.abs(b[0] - x) * 2 >= b[2] + width || Math.abs(b[1] - y) * 2 >= b[3] + height);
  }

  take([x, y], width, height) {
    this.#boxes.push([x, y, width, height]);
  }
}

/**
 * The annotations of a sketch.
 * Returns {joints: [[x, y]], glyphs: [{type, at, numbers}], dimensions: [{number, text, at, paths, width}]}.
 */
export function annotate(sketch, view, { constraints, dimensions }) {
  const taken = new TakenBoxes();
  const drawn = { joints: [], glyphs: [], dimensions: [] };
  if (dimensions) {
    for (const { constraint, number } of shortestFirst(sketch)) {
      const place = dimensionPlace(sketch, constraint, view, taken);
      if (place) drawn.dimensions.push({ number, text: valueText(constraint), ...place });
    }
  }
  if (constraints) placeGlyphs(sketch, view, taken, drawn);
  return drawn;
}

// Glyphs

function placeGlyphs(sketch, view, taken, drawn) {
  const joints = new Map();
  const wanted = new Map();
  const want = (type, spot, number) => {
    const key = `${type} ${spot.at.map(Math.round)}`;
    if (wanted.has(key)) wanted.get(key).numbers.push(number);
    else wanted.set(key, { type, spot, numbers: [number] });
  };
  sketch.constraints.forEach((constraint, number) => {
    if (isDimension(constraint)) return;
    const points = constraint.refs.map((ref) => refPoint(sketch, ref));
    if (constraint.type === "coincident" && points.every(Boolean)) {
      const at = view.toPixel(points[0]);
      joints.set(String(at.map(Math.round)), { at, numbers: [...(joints.get(String(at.map(Math.round)))?.numbers ?? []), number] });
      return;
    }
    for (const spot of spotsOf(sketch, constraint, view)) want(constraint.type, spot, number);
  });
  drawn.joints = [...joints.values()];
  for (const { type, spot, numbers } of wanted.values()) {
    const at = freePlace(spot, taken);
    if (at) drawn.glyphs.push({ type, at, numbers });
  }
}

/** The first free place beside a spot: along its normal, to either side, then along the curve. */
function freePlace({ at, heading }, taken) {
  const along = [Math.cos(heading), Math.sin(heading)];
  const across = [along[1], -along[0]];
  for (const shift of [0, 1, -1, 2, -2]) {
    for (const side of [OFFSET, -OFFSET]) {
      const place = add(add(at, across, side), along, shift * (GLYPH + 1));
      if (taken.isFree(place, GLYPH, GLYPH)) {
        taken.take(place, GLYPH, GLYPH);
        return place;
      }
    }
  }
  return null;
}

/** Where a constraint is marked: on each of its curves, or at the one point that shows it. */
function spotsOf(sketch, constraint, view) {
  const refs = constraint.refs.filter((ref) => !isOutside(ref));
  const points = constraint.refs.map((ref) => refPoint(sketch, ref)).filter(Boolean);
  const curves = refs.filter((ref) => ref[1] === "whole").map((ref) => sketch.primitives[ref[0]]);
  const atPoint = (p) => [{ at: view.toPixel(p), heading: -Math.PI / 4 }];
  if (constraint.type === "symmetric" && points.length >= 2) return atPoint(middleOf(points[0], points[1]));
  if (["horizontal", "vertical"].includes(constraint.type) && points.length === 2) return atPoint(middleOf(points[0], points[1]));
  if (["perpendicular", "tangent"].includes(constraint.type) && curves.length === 2) {
    const shared = sharedPoint(curves[0], curves[1], view);
    if (shared) return atPoint(shared);
  }
  if (constraint.type === "concentric" && curves.length) return atPoint(curves[0].center);
  if (points.length) return atPoint(points[0]);
  return curves.map((curve) => ({ at: view.toPixel(halfway(curve)), heading: -headingAtHalf(curve) }));
}

/** An end that two curves share, to within a few pixels. */
function sharedPoint(one, two, view) {
  const ends = (curve) => ["start", "end"].map((part) => pointOf(curve, part)).filter(Boolean);
  for (const a of ends(one)) {
    for (const b of ends(two)) if (distance(view.toPixel(a), view.toPixel(b)) < JOINED) return a;
  }
  return null;
}

// Dimensions

/** Dimensions in the order in which they find a place: the shorter, the nearer to the sketch. */
function shortestFirst(sketch) {
  const size = (constraint) => (LENGTHS.has(constraint.type) ? Math.abs(constraint.value) : 0);
  const found = sketch.constraints.map((constraint, number) => ({ constraint, number })).filter((each) => isDimension(each.constraint));
  return found.sort((a, b) => size(a.constraint) - size(b.constraint));
}

function dimensionPlace(sketch, constraint, view, taken) {
  const width = valueText(constraint).length * TEXT_WIDTH + 10;
  for (let row = 0; row < 6; row += 1) {
    const place = shapeOf(sketch, constraint, view, row);
    if (!place) return null;
    const [w, h] = place.span ? [Math.max(width, place.span[0]), Math.max(TEXT_HEIGHT, place.span[1])] : [width, TEXT_HEIGHT];
    if (taken.isFree(place.at, w, h)) {
      taken.take(place.at, w, h);
      return { ...place, width };
    }
  }
  return null;
}

function shapeOf(sketch, constraint, view, row) {
  const [first, second] = constraint.refs;
  if (constraint.refs.some((ref) => ref[0] === "external")) return null;
  const primitive = isOutside(first) ? null : sketch.primitives[first[0]];
  if (["radius", "diameter"].includes(constraint.type)) return primitive?.radius ? roundShape(primitive, first[0], constraint.type, view, row) : null;
  if (constraint.type === "angle") return angleShape(sketch, constraint, view, row);
  const ends = endsOf(sketch, constraint);
  if (!ends) return null;
  const [a, b] = ends.map(view.toPixel);
  const axis = constraint.type === "horizontal_distance" ? [1, 0] : constraint.type === "vertical_distance" ? [0, 1] : null;
  return linearShape(a, b, axis, view, row);
}

/** The two positions that a distance is counted between. */
function endsOf(sketch, { refs: [first, second] }) {
  if (!second) {
    const line = lineOf(sketch, first);
    return line ? [line.start, line.end] : null;
  }
  const [a, b] = [anchor(sketch, first), anchor(sketch, second)];
  if (a && b) return [a, b];
  const line = lineOf(sketch, first) ?? lineOf(sketch, second);
  const other = a ?? b ?? (lineOf(sketch, second) ? halfway(lineOf(sketch, second)) : null);
  if (!line || !other) return null;
  const u = direction(line.start, line.end);
  return [other, add(line.start, u, (other[0] - line.start[0]) * u[0] + (other[1] - line.start[1]) * u[1])];
}

const fixed = (p) => `${p[0].toFixed(1)} ${p[1].toFixed(1)}`;
const stroke = (a, b) => `M${fixed(a)}L${fixed(b)}`;

function arrow(tip, angle) {
  const wing = (turn) => [tip[0] - ARROW * Math.cos(angle + turn), tip[1] - ARROW * Math.sin(angle + turn)];
  return `M${fixed(wing(0.32))}L${fixed(tip)}L${fixed(wing(-0.32))}`;
}

/** A line between two extension lines, on the side away from the middle of the sketch; outside of it, if that is near. */
function linearShape(a, b, axis, view, row) {
  if (distance(a, b) < 4) return null;
  const along = axis ?? direction(a, b);
  const corners = [view.box.low, view.box.high, [view.box.low[0], view.box.high[1]], [view.box.high[0], view.box.low[1]]].map(view.toPixel);
  const middle = view.toPixel(view.box.center);
  let across = [-along[1], along[0]];
  const center = middleOf(a, b);
  if ((center[0] - middle[0]) * across[0] + (center[1] - middle[1]) * across[1] < 0) across = [-across[0], -across[1]];
  const level = (p) => p[0] * across[0] + p[1] * across[1];
  const levels = corners.map(level);
  const [own, rim, extent] = [Math.max(level(a), level(b)), Math.max(...levels), Math.max(...levels) - Math.min(...levels)];
  const isSquare = Math.min(Math.abs(along[0]), Math.abs(along[1])) < 1e-3;
  const far = (isSquare && rim - own < NEAR_RIM * extent ? rim : own) + DIMENSION_OFFSET + row * ROW;
  const [p, q] = [a, b].map((end) => add(end, across, far - level(end)));
  const paths = [stroke(p, q)];
  for (const [end, foot] of [[a, p], [b, q]]) paths.push(stroke(add(end, across, 4), add(foot, across, 5)));
  const angle = angleOf(p, q);
  if (distance(p, q) > 3 * ARROW) paths.push(arrow(q, angle), arrow(p, angle + Math.PI));
  return { at: middleOf(p, q), paths, span: isSquare ? [Math.abs(p[0] - q[0]), Math.abs(p[1] - q[1])] : null };
}

function roundShape(primitive, index, type, view, row) {
  const turn = primitive.type === "arc" ? primitive.start_angle + sweepOf(primitive) / 2 : Math.PI / 4 + (index % 3) * 0.35;
  const angle = -(turn + row * 0.5 * (row % 2 ? 1 : -1) * (primitive.type === "circle" ? 1 : 0));
  const center = view.toPixel(primitive.center);
  const radius = primitive.radius * view.scale;
  const ray = (length) => [center[0] + length * Math.cos(angle), center[1] + length * Math.sin(angle)];
  const end = ray(radius + 26 + (primitive.type === "arc" ? row * 18 : 0));
  const paths = [stroke(ray(type === "diameter" ? -radius : 0), end), arrow(ray(radius), angle)];
  if (type === "diameter") paths.push(arrow(ray(-radius), angle + Math.PI));
  return { at: ray(radius + 34 + (primitive.type === "arc" ? row * 18 : 0)), paths };
}

function angleShape(sketch, { refs }, view, row) {
  const lines = refs.map((ref) => lineOf(sketch, ref));
  if (refs.length === 1) lines.unshift({ start: [0, 0], end: [1, 0] });
  if (lines.length !== 2 || !lines.every(Boolean)) return null;
  const own = lines[1];
  const vertex = refs.length === 1 ? own.start : meetingPoint(lines[0], lines[1]);
  if (!vertex) return null;
  const corner = view.toPixel(vertex);
  const heading = (line) => {
    const far = distance(vertex, line.start) > distance(vertex, line.end) ? line.start : line.end;
    return angleOf(corner, view.toPixel(far));
  };
  const [from, to] = [refs.length === 1 ? 0 : heading(lines[0]), heading(own)];
  const radius = 34 + row * 18;
  let turn = (to - from) % (2 * Math.PI);
  if (turn > Math.PI) turn -= 2 * Math.PI;
  if (turn < -Math.PI) turn += 2 * Math.PI;
  const on = (angle, r = radius) => [corner[0] + r * Math.cos(angle), corner[1] + r * Math.sin(angle)];
  const path = `M${fixed(on(from))}A${radius} ${radius} 0 0 ${turn > 0 ? 1 : 0} ${fixed(on(to))}`;
  return { at: on(from + turn / 2, radius + 16), paths: [path, stroke(corner, on(from, radius + 5)), stroke(corner, on(to, radius + 5))] };
}

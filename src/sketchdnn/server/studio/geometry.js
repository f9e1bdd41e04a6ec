// Plane geometry of the four kinds of primitives. Angles in radians, counter-clockwise, y up.
// A primitive is the record of the JSON format: {type, construction, start, end | center, radius, … | at}.

const TAU = 2 * Math.PI;

export const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
export const add = (a, b, factor = 1) => [a[0] + factor * b[0], a[1] + factor * b[1]];
export const middleOf = (a, b) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
export const angleOf = (a, b) => Math.atan2(b[1] - a[1], b[0] - a[0]);
const onCircle = (center, radius, angle) => [
  center[0] + radius * Math.cos(angle),
  center[1] + radius * Math.sin(angle),
];

/** The unit vector from a to b; [1, 0] where they are equal. */
export function direction(a, b) {
  const length = distance(a, b);
  return length ? [(b[0] - a[0]) / length, (b[1] - a[1]) / length] : [1, 0];
}

/** The sweep of an arc, above 0 and at most a full turn. */
export function sweepOf(arc) {
  const sweep = (arc.end_angle - arc.start_angle) % TAU;
  return sweep <= 0 ? sweep + TAU : sweep;
}

/** The named points that a primitive has. */
export const PARTS = { line: ["start", "end"], circle: ["center"], arc: ["start", "end", "center"], point: ["point"] };

/** The position of a named point of a primitive, or null. */
export function pointOf(primitive, part) {
  if (primitive.type === "point") return primitive.at;
  if (part === "center") return primitive.center ?? null;
  if (part !== "start" && part !== "end") return null;
  if (primitive.type === "line") return primitive[part];
  if (primitive.type === "arc") return onCircle(primitive.center, primitive.radius, primitive[`${part}_angle`]);
  return null;
}

/** The point halfway along a primitive. */
export function halfway(primitive) {
  if (primitive.type === "line") return middleOf(primitive.start, primitive.end);
  if (primitive.type === "circle") return onCircle(primitive.center, primitive.radius, Math.PI / 4);
  if (primitive.type === "arc") {
    return onCircle(primitive.center, primitive.radius, primitive.start_angle + sweepOf(primitive) / 2);
  }
  return primitive.at;
}

/** The direction of a curve halfway along it, as an angle. */
export function headingAtHalf(primitive) {
  if (primitive.type === "line") return angleOf(primitive.start, primitive.end);
  if (primitive.type === "circle") return Math.PI / 4 + Math.PI / 2;
  if (primitive.type === "arc") return primitive.start_angle + sweepOf(primitive) / 2 + Math.PI / 2;
  return 0;
}

export function lengthOf(primitive) {
  if (primitive.type === "line") return distance(primitive.start, primitive.end);
  if (primitive.type === "circle") return TAU * primitive.radius;
  return primitive.type === "arc" ? primitive.radius * sweepOf(primitive) : 0;
}

const isWithin = (arc, angle) => (((angle - arc.start_angle) % TAU) + TAU) % TAU <= sweepOf(arc);

/** The point of a primitive that is nearest to a position. */
export function nearestOn(primitive, at) {
  if (primitive.type === "point") return primitive.at;
  if (primitive.type === "line") {
    const { start, end } = primitive;
    const [dx, dy] = [end[0] - start[0], end[1] - start[1]];
    const share = ((at[0] - start[0]) * dx + (at[1] - start[1]) * dy) / (dx * dx + dy * dy || 1);
    return add(start, [dx, dy], Math.min(1, Math.max(0, share)));
  }
  const angle = angleOf(primitive.center, at);
  if (primitive.type === "circle" || isWithin(primitive, angle)) {
    return onCircle(primitive.center, primitive.radius, angle);
  }
  const [start, end] = [pointOf(primitive, "start"), pointOf(primitive, "end")];
  return distance(at, start) < distance(at, end) ? start : end;
}

/** Points that bound a primitive: its box is theirs. */
function extremes(primitive) {
  if (primitive.type === "line") return [primitive.start, primitive.end];
  if (primitive.type === "point") return [primitive.at];
  const quarters = [0, 1, 2, 3].map((k) => (k * Math.PI) / 2);
  const { center, radius } = primitive;
  if (primitive.type === "circle") return quarters.map((angle) => onCircle(center, radius, angle));
  const inside = quarters.filter((angle) => isWithin(primitive, angle)).map((angle) => onCircle(center, radius, angle));
  return [pointOf(primitive, "start"), pointOf(primitive, "end"), ...inside];
}

/** The box around primitives: {low, high, width, height, center, size}; null if there are none. */
export function boundsOf(primitives) {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const primitive of primitives) {
    for (const [x, y] of extremes(primitive)) {
      [x0, y0, x1, y1] = [Math.min(x0, x), Math.min(y0, y), Math.max(x1, x), Math.max(y1, y)];
    }
  }
  if (x0 > x1) return null;
  const [width, height] = [x1 - x0, y1 - y0];
  return { low: [x0, y0], high: [x1, y1], width, height, center: [(x0 + x1) / 2, (y0 + y1) / 2], size: Math.max(width, height) };
}

/** Whether a primitive lies in a box; with `touching`, whether any part of it does. */
export function isInBox(primitive, low, high, touching) {
  const inside = (p) => low[0] <= p[0] && p[0] <= high[0] && low[1] <= p[1] && p[1] <= high[1];
  if (extremes(primitive).every(inside)) return true;
  return touching && samplesOf(primitive).some(inside);
}

function samplesOf(primitive, count = 48) {
  const shares = Array.from({ length: count + 1 }, (_, k) => k / count);
  if (primitive.type === "line") {
    return shares.map((s) => add(primitive.start, [primitive.end[0] - primitive.start[0], primitive.end[1] - primitive.start[1]], s));
  }
  if (primitive.type === "point") return [primitive.at];
  const [start, sweep] = primitive.type === "arc" ? [primitive.start_angle, sweepOf(primitive)] : [0, TAU];
  return shares.map((s) => onCircle(primitive.center, primitive.radius, start + s * sweep));
}

/** The arc from `start` to `end` (either way round) through `via`; null if the three are in line. */
export function arcThrough(start, end, via) {
  const [ax, ay] = [start[0] - via[0], start[1] - via[1]];
  const [bx, by] = [end[0] - via[0], end[1] - via[1]];
  const cross = 2 * (ax * by - ay * bx);
  const size = Math.max(Math.hypot(ax, ay), Math.hypot(bx, by));
  if (Math.abs(cross) < 1e-6 * size * size) return null;
  const [a2, b2] = [ax * ax + ay * ay, bx * bx + by * by];
  const offset = [(by * a2 - ay * b2) / cross, (ax * b2 - bx * a2) / cross];
  const center = add(via, offset);
  const [first, last, between] = [angleOf(center, start), angleOf(center, end), angleOf(center, via)];
  const radius = (distance(center, start) + distance(center, end)) / 2;
  const forward = { type: "arc", construction: false, center, radius, start_angle: first, end_angle: last };
  return isWithin(forward, between) ? forward : { ...forward, start_angle: last, end_angle: first };
}

/** The point where two lines would meet; null if they are parallel. */
export function meetingPoint(one, two) {
  const u = direction(one.start, one.end);
  const v = direction(two.start, two.end);
  const cross = u[0] * v[1] - u[1] * v[0];
  if (Math.abs(cross) < 1e-9) return null;
  const [dx, dy] = [two.start[0] - one.start[0], two.start[1] - one.start[1]];
  return add(one.start, u, (dx * v[1] - dy * v[0]) / cross);
}

/** The SVG path of a primitive, in pixels. `toPixel` maps a position, `scale` is pixels per unit. */
export function pathOf(primitive, toPixel, scale) {
  const at = (p) => toPixel(p).map((value) => Math.round(value * 100) / 100).join(" ");
  if (primitive.type === "line") return `M${at(primitive.start)}L${at(primitive.end)}`;
  if (primitive.type === "point") {
    const [x, y] = toPixel(primitive.at);
    return `M${x - 4} ${y}h8M${x} ${y - 4}v8`;
  }
  const radius = Math.round(primitive.radius * scale * 1000) / 1000;
  const arc = (large, end) => `A${radius} ${radius} 0 ${large} 0 ${at(end)}`;
  if (primitive.type === "circle") {
    const [right, left] = [onCircle(primitive.center, primitive.radius, 0), onCircle(primitive.center, primitive.radius, Math.PI)];
    return `M${at(right)}${arc(1, left)}${arc(1, right)}Z`;
  }
  const sweep = sweepOf(primitive);
  // Two halves, so that an arc of nearly a full turn is not lost when its ends round to one pixel.
  const parts = [0.5, 1].map((share) => onCircle(primitive.center, primitive.radius, primitive.start_angle + share * sweep));
  return `M${at(pointOf(primitive, "start"))}${arc(0, parts[0])}${arc(0, parts[1])}`;
}

// Drawing: clicks and the pointer make primitives and the constraints that snapping implies. No events, no page.

import { angleOf, arcThrough, distance } from "./geometry.js";

const CLICKS = { line: 2, circle: 2, arc: 3, point: 1 };
export const HINTS = {
  select: "Click to select, drag to move, drag on empty space to select by a box.",
  line: ["Click the start of the line.", "Click the end; Esc ends the chain."],
  circle: ["Click the center of the circle.", "Click a point of the circle."],
  arc: ["Click the start of the arc.", "Click its end.", "Click a point on the arc."],
  point: ["Click where the point is."],
  freehand: "Draw strokes by hand, then press Trace.",
};

/** The constraint that joins a new point to what it snapped to; null for a free point. */
function joining(ref, snap) {
  if (snap.ref) return { type: "coincident", refs: [ref, snap.ref] };
  if (snap.curve !== undefined) return { type: "point_on_curve", refs: [ref, [snap.curve, "whole"]] };
  return null;
}

export class Draft {
  /** Places clicked so far: {at, ref?, curve?, guide?}. */
  places = [];

  constructor(tool, construction = false) {
    [this.tool, this.construction] = [tool, construction];
  }

  get hint() {
    return HINTS[this.tool][Math.min(this.places.length, HINTS[this.tool].length - 1)];
  }

  /** The place that a line is held horizontal or vertical to. */
  get guideFrom() {
    return this.tool === "line" && this.places.length ? this.places[0].at : null;
  }

  /** The primitives as they would be with the pointer at a place. */
  preview(place) {
    const places = [...this.places, place];
    if (this.tool === "arc" && places.length === 2) {
      return distance(places[0].at, places[1].at) > 0 ? [{ type: "line", construction: true, start: places[0].at, end: places[1].at }] : [];
    }
    const made = places.length === CLICKS[this.tool] ? this.#primitive(places) : null;
    return made ? [made] : [];
  }

  /** Take a click. Returns {primitive, constraints} when the primitive is complete; its number will be `index`. */
  click(place, index) {
    const places = [...this.places, place];
    if (places.length < CLICKS[this.tool]) {
      this.places = places;
      return null;
    }
    const primitive = this.#primitive(places);
    if (!primitive) return null;
    const constraints = this.#constraints(places, primitive, index);
    // A line goes on from its end, unless it has come back to something that was there.
    const goesOn = this.tool === "line" && !place.ref && place.curve === undefined;
    this.places = goesOn ? [{ at: primitive.end, ref: [index, "end"] }] : [];
    return { primitive, constraints };
  }

  #primitive(places) {
    const [a, b, c] = places.map((place) => place.at);
    const { construction } = this;
    if (this.tool === "point") return { type: "point", construction, at: a };
    if (distance(a, b) === 0) return null;
    if (this.tool === "line") return { type: "line", construction, start: a, end: b };
    if (this.tool === "circle") return { type: "circle", construction, center: a, radius: distance(a, b) };
    const arc = arcThrough(a, b, c);
    return arc && { ...arc, construction };
  }

  #constraints(places, primitive, index) {
    const [first, second] = places;
    const own = (part) => [index, part];
    if (this.tool === "point") return [joining(own("point"), first)].filter(Boolean);
    if (this.tool === "circle") {
      const rim = second.ref && { type: "point_on_curve", refs: [second.ref, own("whole")] };
      return [joining(own("center"), first), rim].filter(Boolean);
    }
    const isTurned = this.tool === "arc" && Math.abs(angleOf(primitive.center, first.at) - primitive.start_angle) > 1e-9;
    const [start, end] = isTurned ? ["end", "start"] : ["start", "end"];
    const guide = this.tool === "line" && second.guide ? { type: second.guide, refs: [own("whole")] } : null;
    return [joining(own(start), first), joining(own(end), second), guide].filter(Boolean);
  }
}

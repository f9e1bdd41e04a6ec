// Lengths and angles as people write them: decimal comma or point, units, fractions of an inch.

export const MM_PER_UNIT = { um: 0.001, mm: 1, cm: 10, dm: 100, m: 1000, km: 1e6, mil: 0.0254, in: 25.4, ft: 304.8, yd: 914.4 };
const ALIASES = { '"': "in", "″": "in", inch: "in", inches: "in", "'": "ft", "′": "ft", feet: "ft", µm: "um", "μm": "um" };
const NUMBER = String.raw`[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?`;
const PATTERN = new RegExp(String.raw`^\s*(?:(${NUMBER})\s+)?(${NUMBER})(?:\s*/\s*(\d+))?\s*([a-zµμ"'″′°]*)\s*$`, "i");

/** The number and the unit of a text such as "12,5 mm" or `1 1/2 in`; null if it is none. */
function parseQuantity(text) {
  const found = PATTERN.exec(text);
  if (!found) return null;
  const [, whole, first, divisor, unit] = found;
  if (whole !== undefined && divisor === undefined) return null;
  const number = (word) => Number(word.replace(",", "."));
  const fraction = divisor === undefined ? number(first) : number(first) / number(divisor);
  const value = (whole === undefined ? 0 : number(whole)) + fraction;
  return Number.isFinite(value) ? { value, unit: ALIASES[unit.toLowerCase()] ?? unit.toLowerCase() } : null;
}

/**
 * A length in the units of a sketch.
 * Throws an Error with a sentence if the text is no length above zero.
 */
export function parseLength(text, units) {
  const found = parseQuantity(text);
  if (!found) throw new Error(`“${text}” is not a length; write a number such as 12,5 or 12.5 mm.`);
  if (!(found.value > 0)) throw new Error("A length is above zero.");
  if (!found.unit || found.unit === units) return found.value;
  if (!(found.unit in MM_PER_UNIT)) throw new Error(`“${found.unit}” is not a unit; use ${Object.keys(MM_PER_UNIT).join(", ")}.`);
  return (found.value * MM_PER_UNIT[found.unit]) / MM_PER_UNIT[units ?? "mm"];
}

/** An angle in radians, from degrees or a number followed by rad. */
export function parseAngle(text) {
  const found = parseQuantity(text);
  if (!found || !["", "°", "deg", "rad"].includes(found.unit)) {
    throw new Error(`“${text}” is not an angle; write degrees such as 45 or 22,5.`);
  }
  return found.unit === "rad" ? found.value : (found.value * Math.PI) / 180;
}

/** A number with at most `digits` significant digits and no trailing zeros. */
export function formatNumber(value, digits = 6) {
  if (value === 0 || !Number.isFinite(value)) return value === 0 ? "0" : "–";
  const text = Math.abs(value) >= 1e7 || Math.abs(value) < 1e-4 ? value.toExponential(digits - 1) : value.toPrecision(digits);
  return text.includes("e") ? text.replace(/\.?0+e/, "e") : String(Number(text));
}

export const formatAngle = (radians) => `${formatNumber((radians * 180) / Math.PI, 5)}°`;

/** The largest of 1, 2, 5 times a power of ten that is at most `value`. */
export function roundStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const share = value / power;
  return (share >= 5 ? 5 : share >= 2 ? 2 : 1) * power;
}

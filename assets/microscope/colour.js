// Colours of numbers. Signed values run from orange over the ground to blue, a pair that readers
// with any common colour vision tell apart; weights from the ground to teal. Each colour of a scale
// comes with the ink that keeps a contrast of 4.5 : 1 on it.

const ENDS = {
  light: { negative: "#c2571a", positive: "#1d5fc4", share: "#0b6e63" },
  dark: { negative: "#f2994a", positive: "#6fa8ff", share: "#4fd1b8" },
};
const STEPS = 255; // odd, so that zero has a colour of its own
const NAN = "#a3128f";

/** "#0f6674" or "rgb(15, 102, 116)" -> [r, g, b], 0…255. */
export function parse(colour) {
  const hex = /^#([0-9a-f]{6}|[0-9a-f]{3})/i.exec(colour.trim());
  if (hex) {
    const digits = hex[1].length === 3 ? [...hex[1]].map((d) => d + d).join("") : hex[1];
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  }
  const numbers = colour.match(/[\d.]+/g)?.slice(0, 3).map(Number) ?? [128, 128, 128];
  return colour.startsWith("color(") ? numbers.map((x) => x * 255) : numbers;
}

export const css = ([r, g, b]) => `rgb(${Math.round(r)}, ${Math.round(g)}, ${Math.round(b)})`;

const linear = (c) => (c <= 10.31475 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const gamma = (c) => 255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);

function luminance(rgb) {
  const [r, g, b] = rgb.map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Contrast of two colours after WCAG, 1…21. */
export function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

function toLab(rgb) {
  const [r, g, b] = rgb.map(linear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromLab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((c) => gamma(Math.min(1, Math.max(0, c))));
}

/** The colour a share `t` of the way from `a` to `b`, evenly to the eye (OKLab). */
export function mix(a, b, t) {
  const [from, to] = [toLab(a), toLab(b)];
  return fromLab(from.map((x, i) => x + (to[i] - x) * t));
}

/** `colour` moved towards `ink` just as far as reading it on `ground` asks for. */
export function readable(colour, ground, ink, least = 4.6) {
  for (let t = 0; t < 1; t += 0.1) {
    const tried = mix(colour, ink, t);
    if (contrast(tried, ground) >= least) return tried;
  }
  return ink;
}

/** The colours of a theme, read from its ground, raised ground and ink. */
export class Palette {
  constructor(ground, raised, ink) {
    [this.ground, this.raised, this.ink] = [ground, raised, ink].map(parse);
    this.dark = luminance(this.ground) < luminance(this.ink);
    this.signature = [ground, raised, ink].join();
    this.muted = css(readable(mix(this.ink, this.ground, 0.38), this.raised, this.ink));
    this.inks = [this.ink, [255, 255, 255], [0, 0, 0]];
    const ends = ENDS[this.dark ? "dark" : "light"];
    const [low, high, share] = [ends.negative, ends.positive, ends.share].map(parse);
    const at = (i) => (2 * i) / (STEPS - 1) - 1;
    this.scales = {
      signed: this.scale((i) => mix(this.raised, at(i) < 0 ? low : high, Math.abs(at(i)))),
      unit: this.scale((i) => mix(this.raised, share, i / (STEPS - 1))),
    };
    this.nan = { ground: NAN, ink: "#ffffff", packed: pack(parse(NAN)) };
    this.readables = new Map();
  }

  scale(colourAt) {
    return Array.from({ length: STEPS }, (_, i) => {
      const ground = colourAt(i).map(Math.round);
      return { ground: css(ground), ink: css(this.inkOn(ground)), packed: pack(ground) };
    });
  }

  inkOn(ground) {
    const [own, ...rest] = this.inks;
    if (contrast(own, ground) >= 4.5) return own;
    return rest.reduce((a, b) => (contrast(a, ground) >= contrast(b, ground) ? a : b));
  }

  /** A dimension's colour, as it can be read on the ground. */
  text(colour) {
    if (!this.readables.has(colour)) {
      this.readables.set(colour, css(readable(parse(colour), this.ground, this.ink)));
    }
    return this.readables.get(colour);
  }

  /** Ground and ink of a number on a scale; null where no colour says it (−∞, not known). */
  of(value, range) {
    if (value === undefined || value === -Infinity) return null;
    if (Number.isNaN(value)) return this.nan;
    const scale = this.scales[range.kind] ?? this.scales.signed;
    const share = range.kind === "unit" ? value : (value / (range.max || 1) + 1) / 2;
    return scale[Math.round(Math.min(1, Math.max(0, share)) * (STEPS - 1))];
  }

  /** A scale as a CSS gradient, for the legend. */
  gradient(kind) {
    const scale = this.scales[kind] ?? this.scales.signed;
    const stops = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1];
    return `linear-gradient(90deg, ${stops.map((s) => scale[Math.round(s * (STEPS - 1))].ground)})`;
  }
}

/** One colour per index of a dimension: neighbours far apart on the wheel. */
export function hue(index, dark) {
  return `hsl(${(index * 137.508 + 205) % 360} 70% ${dark ? 65 : 42}%)`;
}

// A pixel of ImageData as one little-endian integer.
function pack([r, g, b]) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

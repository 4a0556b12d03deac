// Numbers and symbols for reading. The same rules as core/numbers.py: four significant digits, a
// true minus sign, an exponent only below 0.0001 and from 100,000 on.

const MINUS = "\u2212";
export const DIGITS = 4;

/** Write one number: -0.051234 -> "−0.05123", 123456 -> "1.235e5", -Infinity -> "−∞". */
export function write(value, digits = DIGITS) {
  if (value === undefined) return "·";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : `${MINUS}∞`;
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size < 1e-4 || size >= 1e5)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    text = `${trim(mantissa)}e${Number(exponent)}`;
  } else if (size >= 10 ** digits) {
    text = value.toFixed(0);
  } else {
    text = trim(value.toPrecision(digits));
  }
  return signed(text);
}

/** A number as a factor: a negative one stands in brackets. */
export function factor(value) {
  const text = write(value);
  return text.startsWith(MINUS) ? `(${text})` : text;
}

function trim(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function signed(text) {
  return (/^-0(\.0*)?$/.test(text) ? text.slice(1) : text).replaceAll("-", MINUS);
}

/**
 * How the cells of one matrix are written: as many decimals as its largest number needs for four
 * digits, so that the points stand in line; fewer where no number has more (0.05, not 0.0500).
 */
export function writer(numbers) {
  let largest = 0;
  for (const x of numbers) if (Number.isFinite(x)) largest = Math.max(largest, Math.abs(x));
  if (largest === 0 || largest < 1e-3 || largest >= 1e5) return (x) => write(x);
  const before = Math.max(1, Math.floor(Math.log10(largest)) + 1);
  let decimals = Math.max(0, DIGITS - before);
  const round = (x, d) => Math.abs(x - Number(x.toFixed(d))) <= Math.abs(x) * 1e-6;
  while (decimals && numbers.every((x) => !Number.isFinite(x) || round(x, decimals - 1))) {
    decimals -= 1;
  }
  const least = 10 ** -decimals;
  return (x) => {
    // A number that these decimals would round away keeps two digits of its own.
    const fits = Number.isFinite(x) && Math.abs(x) >= least;
    return fits ? signed(x.toFixed(decimals)) : write(x, 2);
  };
}

/** "Q" and [0, 1] -> "Q[0,1]". */
export function cellName(symbol, index) {
  return `${symbol}[${index.join(",")}]`;
}

/** Put {name} placeholders into a sentence. */
export function fill(sentence, values) {
  return (sentence ?? "").replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

/** Make an element: `attributes.text` is set as text, never read as markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A symbol with its subscript: "W_Q" -> W<sub>Q</sub>. Read aloud and copied as it is named. */
export function symbolNode(symbol, extra = "") {
  const [base, ...rest] = symbol.split("_");
  const node = element("span", { class: `symbol ${extra}`.trim() });
  node.append(base);
  if (rest.length) {
    node.append(element("span", { class: "unseen", text: "_" }));
    node.append(element("sub", { text: rest.join("_") }));
  }
  return node;
}

// Numbers of the run as text, each with its exact value and its place in the JSON.

const NONE = "–";
const SPACE = "\u00a0";
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

// With `digits` significant digits; very large and very small values with an exponent.
function significant(value, digits = 3) {
  if (value === 0) return "0";
  const scientific = value.toExponential(digits - 1);
  const exponent = Number(scientific.split("e")[1]);
  if (exponent < -6 || exponent >= 15) return scientific.replace("e+", "e");
  // Digits before the decimal point that are not significant become zeros.
  return exponent < digits ? value.toFixed(digits - 1 - exponent) : Number(scientific).toFixed(0);
}

function withPrefix(value, unit) {
  // The rounded value of 999.9 has another prefix. Zero has none.
  const rounded = Math.abs(Number(value.toExponential(2)));
  const [size, prefix] = PREFIXES.find(([size]) => rounded >= size) ?? (value === 0 ? [1, ""] : PREFIXES.at(-1));
  return `${significant(value / size)}${SPACE}${prefix}${unit}`;
}

const EXACT = String;
const PLAIN = (value) => significant(value);
const SECONDS = (value) => withPrefix(value, "s");
const MICROS = (value) => withPrefix(value / 1e6, "s");
const BYTES_PER_S = (value) => withPrefix(value, "B/s");
const OPS_PER_S = (value) => withPrefix(value, "/s");
const BYTES = (value) => withPrefix(value, "B");
const SHARE = (value) => `${significant(value * 100)}${SPACE}%`;

// The formats of the fields of arms and samples whose name does not tell it.
const FORMATS = new Map([
  ["bytes_per_s", BYTES_PER_S],
  ["ops_per_s", OPS_PER_S],
  ["memory_bytes", BYTES],
  ["seconds", SECONDS],
  ...["punted", "steal", "cached_before", "cached_after", "floor"].map((name) => [name, SHARE]),
  ...["cpu_s_per_gb", "cpu_s_per_million_ops", "switches_per_op", "device_reads_per_op"].map((name) => [name, PLAIN]),
]);

function formatOf(name) {
  if (FORMATS.has(name)) return FORMATS.get(name);
  if (name.endsWith("_us")) return MICROS;
  if (name.endsWith("_s")) return SECONDS;
  return name.startsWith("ratio") ? PLAIN : EXACT;
}

// A round number at an axis, without zeros at its end.
function axisLabel(format, value) {
  const [digits, unit] = format(value).split(SPACE);
  const short = digits.includes(".") && !digits.includes("e") ? digits.replace(/\.?0+$/, "") : digits;
  return unit === undefined ? short : `${short}${SPACE}${unit}`;
}

// The value at a JSON pointer (RFC 6901) of the run.
function valueAt(pointer) {
  return pointer.split("/").slice(1).reduce((value, key) => value?.[key], RUN);
}

// The number at a JSON pointer. `name` is the field that decides its format.
function number(pointer, name = pointer.split("/").at(-1)) {
  const value = valueAt(pointer);
  if (typeof value !== "number") return NONE;
  // A seed may have more digits than numbers of a script.
  const exact = pointer === "/seed" ? SEED : String(value);
  const text = pointer === "/seed" ? SEED : formatOf(name)(value);
  return element("span", { className: "n", "data-key": pointer, "data-value": exact, text });
}

// The estimate at a JSON pointer, and the ends of its interval in brackets if they are known.
function interval(pointer) {
  const name = pointer.split("/").at(-1);
  const [median, low, high] = ["median", "low", "high"].map((end) => number(`${pointer}/${end}`, name));
  if (median === NONE || low === NONE) return [median];
  return [median, " ", element("span", { className: "ci" }, "[", low, ", ", high, "]")];
}

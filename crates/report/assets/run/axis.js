// Axes: the places of values in percent of a length, and the round values beside them.

// Values whose sums and quotients are finite.
const isDrawable = (value) => value >= 1e-12 && value < 1e18;
// An axis is logarithmic if the quotient of its ends exceeds this.
const LOG_FROM = 4;
// The least length of a linear axis relative to its middle: labels of three digits differ, and smaller
// differences are not magnified.
const SPAN_MIN = 0.05;
// Percent that are free at both ends, for marks and labels.
const EDGE = 4;
// The labels that fit on the screen of a phone.
const TICKS_MAX = 6;

// The axis of `values`: null if none can be drawn.
function axisOver(values) {
  const [low, high] = ends(values);
  if (low > high) return null;
  if (high / low > LOG_FROM) return axis(low, high, true);
  const lack = Math.max(((low + high) / 2) * SPAN_MIN - (high - low), 0);
  return axis(low - lack / 2, high + lack / 2, false);
}

// A logarithmic axis of `values`, whatever their quotient.
function logAxisOver(values) {
  const [low, high] = ends(values);
  if (low > high) return null;
  return low < high ? axis(low, high, true) : axis(low / 2, high * 2, true);
}

function ends(values) {
  return values.filter(isDrawable).reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
}

function axis(low, high, isLog) {
  const on = (value) => (isLog ? Math.log(value) : value);
  const place = (value) => {
    if (!isDrawable(value)) return null;
    const share = (on(value) - on(low)) / (on(high) - on(low));
    return EDGE + Math.min(Math.max(share, 0), 1) * (100 - 2 * EDGE);
  };
  const ticks = (isLog ? logTicks(low, high) : linearTicks(low, high)).filter(isDrawable);
  return { isLog, place, ticks: ticks.map((value) => [place(value), value]) };
}

function linearTicks(low, high) {
  const raw = (high - low) / (TICKS_MAX - 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= raw * 0.999) ?? raw;
  const first = Math.ceil(low / step);
  return Array.from({ length: TICKS_MAX }, (_, at) => (first + at) * step).filter((tick) => tick <= high);
}

function logTicks(low, high) {
  const usual = multiples(low, high, [1, 2, 5]);
  if (usual.length < 3) {
    const finer = multiples(low, high, [1, 2, 3, 4, 6, 8]);
    // No such number lies on a short axis.
    return finer.length > 0 ? finer : linearTicks(low, high);
  }
  if (usual.length <= TICKS_MAX) return usual;
  const decades = multiples(low, high, [1]);
  const every = Math.max(Math.ceil(decades.length / TICKS_MAX), 1);
  return decades.filter((_, at) => at % every === 0);
}

// The products of a power of ten and one of `digits` that lie on the axis.
function multiples(low, high, digits) {
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, at) => first + at);
  // A quotient of whole numbers is the nearest number; 10 ** -3 is not.
  const product = (digit, power) => (power < 0 ? digit / 10 ** -power : digit * 10 ** power);
  return powers.flatMap((power) => digits.map((digit) => product(digit, power))).filter((tick) => tick >= low && tick <= high);
}

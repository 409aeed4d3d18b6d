// The figures of a cell: ratios, latencies, throughput against operations in flight, single samples,
// and warm against cold times. A figure that has nothing to show is null.

// Times divided by the baseline's, with their intervals and the noise floor.
function ratioFigure(cell) {
  const ratios = cell.counted.flatMap(({ arm }) => (arm.ratio ? [arm.ratio.low, arm.ratio.median, arm.ratio.high] : []));
  const floor = Math.max(cell.noise?.floor ?? 0, 0);
  const axis = axisOver([...ratios, 1, 1 / (1 + floor), 1 + floor]);
  if (!ratios.some((ratio) => typeof ratio === "number")) return null;
  const isRanked = cell.counted.some(({ arm }) => arm.among_best);
  const rows = cell.counted.map((section) => {
    if (section.arm.ratio) return [section.name(), ratioTrack(section.arm, axis), interval(`${section.at}/ratio`)];
    return [section.name(), mark(DIAMOND, "base", [axis.place(1), MIDDLE], "baseline"), ["baseline"]];
  });
  return figure(
    {
      title: "Ratios",
      caption: "Time relative to the baseline; left of 1 is faster. The line is the 95\u00a0% confidence interval.",
      keys: [
        ...(isRanked ? [...key(CIRCLE, "best", "may be as fast as the fastest"), ...key(CIRCLE, "other", "slower, or with too few samples")] : []),
        ...key(DIAMOND, "base", "baseline"),
        ...(cell.noise ? [bandKey()] : []),
      ],
      label: "time ÷ baseline",
      format: PLAIN,
      ground: () => [...noiseBand(axis, floor), upright("one", axis.place(1))],
    },
    axis,
    rows,
  );
}

function bandKey() {
  const band = drawn("rect", { class: "band", width: 14, height: 14 });
  return element("span", { className: "key" }, drawn("svg", { "aria-hidden": "true", width: 14, height: 14 }, band), "below the noise floor");
}

function noiseBand(axis, floor) {
  const [low, high] = [axis.place(1 / (1 + floor)) ?? 0, axis.place(1 + floor)];
  return high === null ? [] : [drawn("rect", { class: "band", x: percent(low), width: percent(high - low), y: 0, height: "100%" })];
}

function ratioTrack({ ratio, among_best: isBest }, axis) {
  const className = isBest ? "best" : "other";
  const median = mark(CIRCLE, className, [axis.place(ratio.median), MIDDLE], PLAIN(ratio.median));
  if (ratio.low === null) return median;
  // The ends are taller than the mark, so that a narrow interval stays visible.
  const bar = `bar ${className}`;
  const places = [ratio.low, ratio.high].map(axis.place).filter((x) => x !== null);
  return [...places.map((x) => segment(bar, [x, 28], [x, 72])), ...stroke(axis, bar, ratio.low, ratio.high), ...median];
}

// Field, name and shape of each percentile. The name is its class as well.
const PERCENTILES = [["p50_us", "p50", CIRCLE], ["p95_us", "p95", DIAMOND], ["p99_us", "p99", TRIANGLE]];

function latencyFigure(cell) {
  const values = ({ arm }) => PERCENTILES.map(([field]) => arm[field]).filter((value) => value !== null);
  const timed = cell.counted.filter((section) => values(section).length > 0);
  const axis = axisOver(timed.flatMap(values));
  if (!axis) return null;
  const rows = timed.map((section) => {
    const known = values(section);
    const marks = PERCENTILES.filter(([field]) => section.arm[field] !== null).flatMap(([field, name, shape]) =>
      mark(shape, name, [axis.place(section.arm[field]), MIDDLE], `${name} ${MICROS(section.arm[field])}`),
    );
    const numbers = PERCENTILES.flatMap(([field], at) => [at ? " · " : "", number(`${section.at}/${field}`)]);
    return [section.name(), [...stroke(axis, "span", Math.min(...known), Math.max(...known)), ...marks], numbers];
  });
  const caption = "Time of one operation: medians of three percentiles over the samples.";
  const keys = PERCENTILES.flatMap(([, name, shape]) => key(shape, name, name));
  return figure({ title: "Latency of an operation", caption, keys, label: "latency", format: MICROS }, axis, rows);
}

// The histogram of the latencies of each arm. The fullest bucket has the whole height.
function histogramFigure(cell) {
  const timed = cell.counted.filter(({ arm }) => arm.histogram.length > 0);
  const axis = logAxisOver(timed.flatMap(({ arm }) => arm.histogram.flatMap(({ below_us: end }) => [end / 2, end])));
  if (!axis) return null;
  const rows = timed.map((section) => {
    const counts = section.arm.histogram.map(({ count }) => count);
    const most = Math.max(...counts, 1);
    const bars = section.arm.histogram.flatMap(({ below_us: end, count }) => {
      const [low, high] = [axis.place(end / 2), axis.place(end)];
      if (low === null || high === null) return [];
      const share = (100 * count) / most;
      const place = { x: percent(low), width: percent(high - low), y: percent(100 - share), height: percent(share) };
      return [drawn("rect", { class: "count", ...place }, drawn("title", {}, `${count} below ${MICROS(end)}`))];
    });
    return [section.name(), bars, [`${counts.reduce((sum, count) => sum + count, 0)} timed`]];
  });
  const caption = "Number of operations by their time, in powers of two, over all samples.";
  return figure({ title: "Latencies", caption, label: "latency", format: MICROS }, axis, rows);
}

// A mark for each sample, the first block on top.
function sampleFigure(cell) {
  const sampled = cell.arms.filter(({ samples }) => samples.length > 0);
  const all = sampled.flatMap(({ samples }) => samples);
  const axis = axisOver(all.map(comparedTime));
  if (!axis) return null;
  const blocks = Math.max(...all.map(({ block }) => block), 2);
  const markOf = (sample) => {
    // A fifth of the height is free above the first block and below the last one.
    const y = 20 + 60 * Math.min(Math.max(sample.block - 1, 0) / (blocks - 1), 1);
    const place = [axis.place(comparedTime(sample)), y];
    const hint = `block ${sample.block}: ${SECONDS(comparedTime(sample))}`;
    if (sample.discarded === "") return mark(CIRCLE, "sample", place, hint);
    return mark(CROSS, "discarded", place, `${hint}, discarded: ${sample.discarded}`);
  };
  const rows = sampled.map((section) => {
    const counted = [number(`${section.at}/runs`), " counted"];
    const discarded = section.arm.discarded > 0 ? [", ", number(`${section.at}/discarded`), " discarded"] : [];
    return [section.name(), section.samples.flatMap(markOf), [...counted, ...discarded]];
  });
  const caption = "One mark per sample; the first block is on top, so a slant is a drift.";
  const keys = [...key(CIRCLE, "sample", "counted"), ...key(CROSS, "discarded", "discarded")];
  return figure({ title: "Single samples", caption, keys, label: "time", format: SECONDS }, axis, rows);
}

// A figure for each pair of cells that differ in the state of the cache alone.
function warmColdFigures(cells) {
  return cells.filter(({ cache }) => cache === "warm").flatMap((warm) => {
    const cold = cells.find((cell) => cell.cache === "cold" && cell.nameWithoutCache === warm.nameWithoutCache);
    return cold ? [warmColdFigure(warm, cold)] : [];
  }).filter((made) => made !== null);
}

function warmColdFigure(warm, cold) {
  const pairs = warm.counted.flatMap((section) => {
    const twin = cold.counted.find(({ arm }) => isSameArm(arm, section.arm));
    return twin ? [[section, section.arm.seconds.median, twin.arm.seconds.median]] : [];
  });
  const axis = axisOver(pairs.flatMap(([, ...medians]) => medians));
  if (!axis) return null;
  const rows = pairs.map(([section, atWarm, atCold]) => {
    const marks = [
      ...mark(CIRCLE, "warm", [axis.place(atWarm), MIDDLE], `warm ${SECONDS(atWarm)}`),
      ...mark(SQUARE, "cold", [axis.place(atCold), MIDDLE], `cold ${SECONDS(atCold)}`),
    ];
    const times = `${SECONDS(atWarm)} → ${SECONDS(atCold)}, ${PLAIN(atCold / atWarm)}${SPACE}×`;
    return [section.name(), [...stroke(axis, "span", atWarm, atCold), ...marks], [times]];
  });
  const caption = "Median time of the same work, with and without the file in the page cache.";
  const keys = [...key(CIRCLE, "warm", "warm"), ...key(SQUARE, "cold", "cold")];
  return figure({ title: warm.nameWithoutCache, caption, keys, label: "time", format: SECONDS }, axis, rows);
}

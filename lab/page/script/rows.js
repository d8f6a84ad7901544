// The data of a chart as uPlot wants it: one list of X for all series.

// rows returns {x, of}: all X in order, each as often as the series that has it most often, and for each curve the row
// of each of its points.
function rows(curves) {
  const times = new Map();
  for (const { x } of curves) {
    for (let i = 0; i < x.length;) {
      let n = 1;
      while (x[i + n] === x[i]) n++;
      times.set(x[i], Math.max(n, times.get(x[i]) ?? 0));
      i += n;
    }
  }
  const x = [], first = new Map();
  for (const value of [...times.keys()].sort((a, b) => a - b)) {
    first.set(value, x.length);
    for (let n = times.get(value); n > 0; n--) x.push(value);
  }
  const of = curves.map(curve => {
    let again = 0;
    return curve.x.map((value, i) => {
      again = i > 0 && curve.x[i - 1] === value ? again + 1 : 0;
      return first.get(value) + again;
    });
  });
  return { x, of };
}

// column returns values of a curve in its rows. Where it has no point, it has undefined: a line goes on.
function column(length, places, values) {
  const all = new Array(length).fill(undefined);
  places.forEach((row, i) => { all[row] = values[i]; });
  return all;
}

// smoothed returns running means in which each earlier value weighs that much less than the next. It has the gaps of
// the values.
function smoothed(values, weight) {
  let sum = 0, weights = 0;
  return values.map(value => {
    if (value === null) return null;
    sum = weight * sum + (1 - weight) * value;
    weights = weight * weights + (1 - weight);
    return sum / weights;
  });
}

// alone returns the indices of points that have no neighbour to be joined with.
function alone(values) {
  const found = new Set(), missing = i => (values[i] ?? null) === null;
  values.forEach((value, i) => { if (value !== null && missing(i - 1) && missing(i + 1)) found.add(i); });
  return found;
}

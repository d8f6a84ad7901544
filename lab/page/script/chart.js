// One chart: uPlot, its legend, and what a reader can do with them.

const font = "12px system-ui, sans-serif";
const measure = document.createElement("canvas").getContext("2d");
function textWidth(text) { measure.font = font; return Math.ceil(measure.measureText(text).width); }

class Chart {
  constructor(figure) {
    this.figure = figure;
    Object.assign(this, JSON.parse(figure.querySelector("script[type='application/json']").textContent));
    this.host = figure.querySelector(".plot");
    this.zoom = null; // the part of X in view, or all of it: Y follows what is in view
    this.weight = 0; // of smoothing
    this.keyRow = null; // where the keys have gone to; a pointer goes anywhere
    this.colors = pageColors();
    for (const curve of this.series) {
      curve.shown = true;
      curve.joins = curve.mark === "line" || curve.mark === "joined";
      curve.alone = alone(curve.y);
    }
    this.stack();
    this.rows = rows(this.series);
    this.smooth = this.smooth && this.series.some(curve => curve.joins && curve.x.length > 10);
    this.full = this.spanX();
    this.alone = this.shared && this.series.length === 1; // and needs no legend
    this.buildLegend();
    this.buildTools();
    this.u = new uPlot(this.options(), this.data(), this.host);
    this.listen();
  }

  // stack says where bars begin and end: in some charts on those below that are shown.
  stack() {
    const tops = new Map();
    for (const curve of this.series) {
      curve.top = curve.y;
      if (!this.stacked || curve.mark !== "bars") continue;
      curve.base = curve.x.map(x => tops.get(x) ?? 0);
      curve.top = curve.y.map((y, i) => y === null ? null : y + curve.base[i]);
      if (curve.shown) curve.top.forEach((y, i) => { if (y !== null) tops.set(curve.x[i], y); });
    }
  }

  // data are the rows of all curves, and behind them those of smoothed curves.
  data() {
    const length = this.rows.x.length;
    const raw = this.series.map((curve, i) => column(length, this.rows.of[i], curve.top));
    const smooth = this.smooth ? this.series.map((curve, i) => column(length, this.rows.of[i], smoothed(curve.y, this.weight))) : [];
    return [this.rows.x, ...raw, ...smooth];
  }

  color(curve) { return scheme.dark ? curve.dark : curve.light; }

  options() {
    const line = (curve, smooth) => ({
      label: curve.name, show: !smooth, scale: "y", spanGaps: false,
      stroke: () => this.color(curve), width: curve.joins ? curve.width : 0, dash: curve.dashed ? [7, 4] : undefined,
      paths: curve.joins ? uPlot.paths.linear() : () => null, points: { show: false }, pxAlign: 0,
    });
    const series = [{}, ...this.series.map(curve => line(curve, false))];
    if (this.smooth) series.push(...this.series.map(curve => line(curve, true)));
    return {
      ...this.size(), series, padding: [10, () => this.right(), 0, () => this.left()],
      legend: { show: false }, pxAlign: 0, focus: { alpha: 0.25 },
      scales: {
        x: { time: false, distr: this.logX ? 3 : 1, range: () => this.zoom ?? this.full },
        y: { distr: this.logY ? 3 : 1, range: () => this.spanY() },
      },
      axes: [this.axisX(), this.axisY()],
      cursor: {
        y: false,
        points: { size: 9, width: 2, fill: (u, i) => this.color(this.curveOf(i)), stroke: () => this.colors.paper },
        dataIdx: (u, i, row) => i === 0 ? row : this.nearestRow((i - 1) % this.series.length, this.keyRow ?? row),
        drag: { x: true, y: false, dist: 5, setScale: false },
        bind: { dblclick: () => () => { this.show(null); return null; } },
      },
      hooks: {
        drawAxes: [u => drawReferences(u, this, this.colors)],
        drawSeries: [(u, i) => {
          const index = i - 1;
          if (index < this.series.length) drawMarks(u, this.series[index], this.color(this.series[index]), this.barShare(index), this.shared?.bar);
        }],
        draw: [u => {
          if (this.series.some(curve => curve.mark === "bars")) drawReferences(u, this, this.colors); // they cover them
          drawNames(u, this, this.colors);
        }],
        setCursor: [() => this.showValues()],
        setSelect: [u => this.zoomTo(u.select)],
      },
    };
  }

  curveOf(i) { return this.series[(i - 1) % this.series.length]; }

  // barShare is the place of a curve among those that are bars.
  barShare(index) {
    const bars = this.series.filter(curve => curve.mark === "bars" && curve.shown);
    return this.stacked ? [0, 1] : [bars.indexOf(this.series[index]), bars.length];
  }

  size() {
    const width = Math.max(200, this.host.clientWidth);
    return { width, height: this.shared ? 170 : width < 560 ? 260 : 340 };
  }

  axis(scale, rest) {
    const stroke = () => this.colors.line;
    return {
      scale, font, stroke: () => this.colors.soft, incrs: (u, i, low, high) => [Math.max(5, high - low)], space: 1, gap: 5,
      splits: (u, i, low, high) => (this[scale + "Ticks"] = this.ticksOf(scale, u, low, high)).map(t => t.at),
      values: () => this[scale + "Ticks"].map(t => t.label),
      grid: { stroke, width: 1 / devicePixelRatio, filter: (u, splits) => splits.map((at, k) => this[scale + "Ticks"][k]?.label ? at : null) },
      ticks: { stroke, width: 1, size: 5 }, border: { show: true, stroke, width: 1 },
      ...rest,
    };
  }

  axisX() {
    return this.axis("x", {
      size: () => this.layLabels().height, lineGap: 1.2,
      values: () => this.labels ? this.xTicks.map(t => this.layLabels().lines[t.index]) : this.xTicks.map(t => t.label),
      rotate: () => this.layLabels().angle,
    });
  }

  axisY() {
    return this.axis("y", { size: (u, values) => 12 + Math.max(20, ...(values ?? []).map(textWidth)) });
  }

  ticksOf(scale, u, low, high) {
    if (scale === "y") return ticks(low, high, clamp(Math.floor(u.bbox.height / uPlot.pxRatio / (this.shared ? 20 : 36)), 3, 8), { log: this.logY });
    if (this.labels) {
      const every = this.layLabels().every;
      return this.labels.map((label, index) => ({ at: index, label, index })).filter(t => t.at >= low && t.at <= high && t.index % every === 0);
    }
    const kind = { log: this.logX, base2: this.base2, whole: this.whole }, width = u.bbox.width / uPlot.pxRatio;
    for (let most = 10; most > 3; most--) {
      const all = ticks(low, high, most, kind);
      if (all.reduce((sum, t) => sum + (t.label ? textWidth(t.label) + 18 : 0), 0) <= width) return all;
    }
    return ticks(low, high, 3, kind);
  }

  // layLabels says how the labels of the X axis are set: in lines where all words are narrow enough, or else slanted.
  layLabels() {
    if (!this.labels) return { height: 28, angle: 0 };
    const [low, high] = this.zoom ?? this.full;
    const slot = (this.host.clientWidth - 80) / (high - low);
    const words = this.labels.flatMap(label => label.split(" "));
    if (Math.max(...words.map(textWidth)) <= slot - 6) {
      const lines = this.labels.map(label => wrap(label, slot - 6));
      return { lines, angle: 0, every: 1, height: 14 + 14.5 * Math.max(...lines.map(text => text.split("\n").length)) };
    }
    const longest = Math.max(...this.labels.map(textWidth));
    return { lines: this.labels, angle: 40, every: Math.max(1, Math.ceil(20 / slot)), height: 22 + 0.65 * longest, reach: 0.77 * longest };
  }

  // left is the room that a slanted label needs beside the axis, right that of half a label.
  left() {
    const { reach } = this.layLabels();
    return reach ? Math.max(0, reach - 30 - (this.host.clientWidth - 80) / this.labels.length / 2) : 0;
  }
  right() { return 18; }

  spanX() {
    if (this.shared) return this.shared.x;
    if (this.labels) return [-0.5, this.labels.length - 0.5];
    let all = [Infinity, -Infinity];
    for (const { x } of this.series) {
      if (x.length) all = [Math.min(all[0], x[0]), Math.max(all[1], x[x.length - 1])];
    }
    for (const line of this.lines) if (line.vertical) all = [Math.min(all[0], line.value), Math.max(all[1], line.value)];
    const bars = this.series.filter(curve => curve.mark === "bars");
    if (!bars.length) return padded(all, this.logX, 0.015);
    // Whole bars, which are as wide as their least distance.
    const f = this.logX ? Math.log : x => x, back = this.logX ? Math.exp : x => x;
    let least = Infinity;
    for (const { x } of bars) x.forEach((value, i) => { if (i > 0 && value > x[i - 1]) least = Math.min(least, f(value) - f(x[i - 1])); });
    const half = least < Infinity ? least / 2 : 0.5;
    return padded([back(f(all[0]) - half), back(f(all[1]) + half)], this.logX, 0);
  }

  // spanY includes all points that are in view; of a line of which there is none, those to its left and right.
  spanY() {
    if (this.shared && !this.zoom) return this.shared.y;
    const [left, right] = this.zoom ?? this.full;
    let low = Infinity, high = -Infinity, zero = this.zero;
    const include = y => { if (!this.logY || y > 0) { low = Math.min(low, y); high = Math.max(high, y); } };
    for (const curve of this.series) {
      if (!curve.shown) continue;
      zero ||= curve.mark === "bars";
      const crosses = curve.joins && lowerBound(curve.x, left);
      const none = curve.joins && crosses > 0 && curve.x[crosses] > right;
      curve.top.forEach((y, i) => {
        const between = none && (i === crosses || i === crosses - 1);
        if (y === null || !between && (curve.x[i] < left || curve.x[i] > right)) return;
        const spread = curve.spread ? curve.spread[i] : 0;
        include(y + spread);
        include(y - spread);
        include(y);
      });
    }
    for (const line of this.lines) if (!line.vertical) include(line.value);
    zero &&= !this.logY;
    if (zero) include(0);
    const span = padded([low, high], this.logY, 0.05), more = this.logY ? 0 : this.least - (span[1] - span[0]);
    if (zero && low === 0) return [0, Math.max(span[1], this.least)];
    if (zero && high === 0 && low < 0) return [Math.min(span[0], -this.least), 0];
    return more > 0 ? [span[0] - more / 2, span[1] + more / 2] : span;
  }

  // What a reader can do.

  zoomTo({ left, width }) {
    const { u } = this;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (width > 4) this.show([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  }

  // zoomBy shows a share of what is in view, or more than that, around the cursor or the middle.
  zoomBy(share) {
    const { u } = this, width = u.over.clientWidth, middle = u.cursor.left >= 0 ? u.cursor.left : width / 2;
    this.show([middle - share * middle, middle + share * (width - middle)].map(at => u.posToVal(at, "x")));
  }

  // show has a part of X in view, as far as there is something, or all of it: null.
  show(part) {
    const [low, high] = this.full;
    if (part) part = [Math.max(part[0], low), Math.min(part[1], high)];
    if (part && !hasLength(part)) return;
    this.zoom = part && (part[0] > low || part[1] < high) ? part : null;
    this.rescale();
  }

  rescale() {
    this.tools.reset.hidden = !this.zoom;
    const [min, max] = this.zoom ?? this.full;
    this.u.batch(() => this.u.setScale("x", { min, max }));
  }

  toggle(index) {
    const curve = this.series[index];
    curve.shown = !curve.shown;
    this.entries[index].button.setAttribute("aria-pressed", curve.shown);
    this.stack();
    this.u.setData(this.data(), false);
    this.showCurves();
  }

  // smoothTo draws running means, and what they are of faintly.
  smoothTo(weight) {
    this.weight = weight;
    this.u.setData(this.data(), false);
    this.showCurves();
  }

  showCurves() {
    this.series.forEach((curve, i) => {
      this.u.series[i + 1].alpha = this.weight && curve.joins ? 0.25 : 1;
      this.u.setSeries(i + 1, { show: curve.shown });
      if (this.smooth) this.u.setSeries(this.series.length + i + 1, { show: curve.shown && this.weight > 0 && curve.joins });
    });
    this.rescale();
    this.u.redraw();
  }

  // save returns what a reader has chosen, for restore on the same page when it has more.
  save() { return { zoom: this.zoom, hidden: this.series.filter(curve => !curve.shown).map(curve => curve.name), weight: this.weight }; }

  restore({ zoom, hidden, weight }) {
    this.series.forEach((curve, i) => { if (hidden.includes(curve.name)) this.toggle(i); });
    if (weight && this.smooth) {
      this.figure.querySelector("input").value = 100 * weight;
      this.smoothTo(weight);
    }
    this.zoom = zoom;
    this.rescale();
  }

  // Legend and values.

  buildLegend() {
    const legend = this.figure.querySelector(".legend");
    this.at = this.figure.querySelector(".at");
    this.entries = this.series.map((curve, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const name = document.createElement("span"), value = document.createElement("span");
      name.textContent = curve.name || this.y || "values";
      name.className = "name";
      value.className = "value";
      button.append(swatch(curve), name, value);
      button.addEventListener("click", () => this.toggle(index));
      legend.append(button);
      return { button, value };
    });
    legend.hidden = this.alone;
    this.paintLegend();
  }

  paintLegend() {
    this.series.forEach((curve, i) => { this.entries[i].button.style.setProperty("--series", this.color(curve)); });
  }

  // nearestRow returns the row of the point of a curve that is nearest to the cursor: along X, or in the plane for
  // points with names, to which keys go one by one.
  nearestRow(index, row) {
    const curve = this.series[index], places = this.rows.of[index], { u } = this;
    const toX = x => u.valToPos(x, "x") - u.cursor.left, toY = y => u.valToPos(y, "y") - u.cursor.top;
    if (curve.names && this.keyRow !== null) return places.includes(row) ? row : null;
    let best = null, least = curve.names ? 60 : Infinity;
    const consider = i => {
      if (i < 0 || i >= places.length || curve.y[i] === null && places[i] !== row) return;
      const distance = curve.names ? Math.hypot(toX(curve.x[i]), toY(curve.y[i])) : Math.abs(toX(curve.x[i]));
      if (distance < least) { least = distance; best = i; }
    };
    if (curve.names) curve.x.forEach((x, i) => consider(i));
    else {
      const after = lowerBound(places, row);
      let before = after - 1, next = after;
      while (before >= 0 && curve.y[before] === null) before--;
      while (next < places.length && curve.y[next] === null && places[next] !== row) next++;
      if (places[next] === row) return row;
      consider(before);
      consider(next);
    }
    return best === null ? null : places[best];
  }

  // showValues writes the values at the cursor beside the names.
  showValues() {
    const { idxs } = this.u.cursor, idx = this.keyRow ?? this.u.cursor.idx;
    const shown = idx !== null && idx !== undefined;
    this.at.textContent = shown ? this.place(this.rows.x[idx]) : "";
    this.series.forEach((curve, i) => {
      this.entries[i].value.textContent = shown && curve.shown ? this.valueAt(curve, i, idx, idxs[i + 1]) : "";
    });
    if (shown && this.alone) this.at.textContent += ": " + this.entries[0].value.textContent;
  }

  valueAt(curve, i, row, nearest) {
    if (nearest === null || nearest === undefined) return "–";
    const place = lowerBound(this.rows.of[i], nearest);
    let text = number(curve.y[place]);
    if (this.weight && curve.joins) text = number(this.u.data[this.series.length + i + 1][nearest]);
    if (curve.spread && curve.spread[place] > 0) text += " ± " + number(curve.spread[place]);
    if (curve.names?.[place]) text = curve.names[place] + ": " + text;
    const x = this.rows.x[nearest], there = this.labels ? this.place(x) : number(x);
    return x === this.rows.x[row] || there === this.place(this.rows.x[row]) ? text : text + " at " + there;
  }

  place(x) {
    if (this.labels) return this.labels[clamp(Math.round(x), 0, this.labels.length - 1)] ?? "";
    const axis = this.x.length > 24 || !this.x ? "" : this.x + " ";
    return axis + number(x);
  }

  buildTools() {
    const tools = this.figure.querySelector(".tools");
    this.tools = {};
    const button = (name, action) => {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = name;
      b.addEventListener("click", action);
      tools.append(b);
      return b;
    };
    if (this.smooth) {
      const label = document.createElement("label"), slider = document.createElement("input");
      Object.assign(slider, { type: "range", min: 0, max: 99, value: 0 });
      label.append("Smoothing ", slider);
      slider.addEventListener("input", () => this.smoothTo(slider.value / 100));
      tools.append(label);
    }
    this.tools.reset = button("Reset zoom", () => this.show(null));
    this.tools.reset.hidden = true;
    const picture = this.figure.querySelector("noscript");
    if (picture && !this.shared) button("Save as SVG", () => save(pictureIn(picture.textContent), (this.title || "chart") + ".svg"));
  }

  listen() {
    const free = () => { this.keyRow = null; };
    for (const name of ["mousemove", "touchmove"]) this.u.over.addEventListener(name, free, { capture: true, passive: true });
    this.u.over.addEventListener("touchmove", event => {
      const box = this.u.over.getBoundingClientRect(), touch = event.touches[0];
      this.u.setCursor({ left: clamp(touch.clientX - box.left, 0, box.width), top: clamp(touch.clientY - box.top, 0, box.height) });
    }, { passive: true });
    this.host.setAttribute("aria-keyshortcuts", "ArrowRight ArrowLeft Home End + - 0");
    this.host.addEventListener("keydown", event => this.key(event));
    this.host.addEventListener("blur", () => { free(); this.u.setCursor({ left: -10, top: -10 }); });
    this.resized = new ResizeObserver(() => {
      const size = this.size();
      if (size.width !== this.u.width || size.height !== this.u.height) this.u.setSize(size);
    });
    this.resized.observe(this.host);
    this.recolor = () => { this.colors = pageColors(); this.paintLegend(); this.u.redraw(false, true); };
    scheme.watchers.push(this.recolor);
  }

  // end gives back what would keep a chart that was replaced.
  end() {
    scheme.watchers.splice(scheme.watchers.indexOf(this.recolor), 1);
    this.resized.disconnect();
    this.u.destroy();
  }

  // key moves the cursor from point to point, which the view follows, and zooms.
  key(event) {
    const x = this.rows.x, [low, high] = this.zoom ?? this.full, many = event.shiftKey ? 10 : 1;
    const first = x.findIndex(value => value >= low), last = x.findLastIndex(value => value <= high);
    const now = this.keyRow ?? this.u.cursor.idx ?? null;
    const moves = {
      ArrowRight: () => now === null ? first : now + many, ArrowLeft: () => now === null ? last : now - many,
      Home: () => 0, End: () => x.length - 1,
    };
    const nearer = () => this.zoomBy(0.5), all = () => this.show(null);
    const actions = { "+": nearer, "=": nearer, "-": () => this.zoomBy(2), 0: all, Escape: all };
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (actions[event.key]) {
      actions[event.key]();
      this.tell(this.zoom ? this.zoom.map(x => this.place(x)).join(" to ") : "all");
    } else if (moves[event.key] && x.length) {
      this.keyRow = clamp(moves[event.key](), 0, x.length - 1);
      this.follow(x[this.keyRow]);
      this.u.setCursor({ left: this.u.valToPos(x[this.keyRow], "x"), top: 0 });
      this.say();
    } else return;
    event.preventDefault();
  }

  // follow moves the part of X in view so far that a place is in it.
  follow(x) {
    const [low, high] = this.zoom ?? this.full;
    if (x >= low && x <= high) return;
    const to = value => this.u.valToPos(value, "x"), by = x < low ? to(x) - to(low) : to(x) - to(high);
    this.show([low, high].map(value => this.u.posToVal(to(value) + by, "x")));
  }

  // say tells the values to who does not see them.
  say() {
    const values = this.series.map((curve, i) => curve.shown ? curve.name + " " + this.entries[i].value.textContent : "").filter(Boolean);
    this.tell(this.at.textContent + ": " + values.join(", "));
  }

  tell(text) { this.figure.querySelector("output").textContent = text; }
}

// lowerBound returns the index of the first of ascending numbers that is not below x.
function lowerBound(numbers, x) {
  let low = 0, high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

// hasLength reports whether numbers of a span can be told apart on an axis.
function hasLength([low, high]) { return high - low > 1e-9 * Math.max(Math.abs(low), Math.abs(high)); }

// padded returns a span with a share of it around it, and one of some length if it has none. All that is computed from
// it is finite.
function padded(span, log, share) {
  const [low, high] = around(span, log, share);
  return [clamp(low, log ? 1e-307 : -8e307, 8e307), Math.min(high, 8e307)];
}

function around([low, high], log, share) {
  if (log) {
    if (low > high) return [1, 10];
    if (low === high) return [low / 2, high * 2];
    const factor = (high / low) ** share;
    return [low / factor, high * factor];
  }
  if (low > high) return [0, 1];
  if (low === 0 && high === 0) return [-1, 1];
  const more = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high)) ? Math.abs(low) / 10 : share * (high - low);
  return [low - more, high + more];
}

// wrap breaks a text at words into lines of a width.
function wrap(text, width) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? lines[lines.length - 1] + " " + word : word;
    if (lines.length && textWidth(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join("\n");
}

// swatch draws what a curve looks like, for the legend.
function swatch(curve) {
  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    return element;
  };
  const picture = svg("svg", { width: 26, height: 14, "aria-hidden": "true" });
  const line = { stroke: "currentColor", "stroke-width": curve.joins ? curve.width : 1.6, fill: "none" };
  if (curve.joins) picture.append(svg("path", { ...line, d: "M1 7H25", "stroke-dasharray": curve.dashed ? "7 4" : "none" }));
  const marks = {
    dots: () => svg("circle", { cx: 13, cy: 7, r: 3.5, fill: "currentColor" }),
    rings: () => svg("circle", { ...line, cx: 13, cy: 7, r: 4.4 }),
    crosses: () => svg("path", { ...line, d: "M9.5 3.5l7 7m0 -7l-7 7" }),
    dashes: () => svg("path", { ...line, d: "M6 7H20" }),
    bars: () => svg("rect", { x: 4, y: 1, width: 18, height: 12, fill: "currentColor" }),
  };
  marks.joined = marks.dots;
  if (marks[curve.mark]) picture.append(marks[curve.mark]());
  return picture;
}

// pictureIn returns the static picture in a part of a page as a file.
function pictureIn(html) {
  return new XMLSerializer().serializeToString(new DOMParser().parseFromString(html, "text/html").querySelector("svg"));
}

// save hands a picture to the reader.
function save(text, name) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// drawCharts draws those of a part of the page, and ends those that it replaced.
function drawCharts(part) {
  for (const old of views.filter(view => !view.figure.isConnected)) {
    views.splice(views.indexOf(old), 1);
    old.end();
  }
  part.querySelectorAll("figure.chart:not(.heat)").forEach(figure => views.push(new Chart(figure)));
}
drawCharts(document);

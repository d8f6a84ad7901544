// A heat map: a canvas with a cell for each row and column, the choice of what colours say, and the curves of one row.

class HeatMap {
  constructor(figure) {
    this.figure = figure;
    Object.assign(this, JSON.parse(figure.querySelector("script[type='application/json']").textContent));
    this.host = figure.querySelector(".plot");
    this.canvas = document.createElement("canvas");
    this.host.append(this.canvas);
    this.cells = this.measures.map(m => this.largest(m));
    this.at = null; // {row, column} that is pointed at
    this.shown = null; // the row whose curves are shown
    this.buttons = this.measures.map((m, i) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: m.name });
      button.addEventListener("click", () => this.choose(i));
      figure.querySelector(".tools").append(button);
      return button;
    });
    figure.querySelector(".cell").append(this.hint());
    this.beside = document.createElement("div");
    figure.after(this.beside);
    this.listen();
    this.begin();
  }

  // begin shows the measure with the most cells of the worst class that there is, and its worst row.
  begin() {
    const reached = this.measures.map((m, i) => {
      const all = this.cells[i].filter(v => v !== null).map(v => m.log && v < Infinity ? 0 : m.classes.findLastIndex(c => v >= c.from[0]));
      const worst = all.reduce((most, c) => Math.max(most, c), 0);
      return worst && 1e9 * worst + all.filter(c => c === worst).length;
    });
    this.choose(reached.indexOf(Math.max(...reached)));
    const cells = this.cells[this.chosen], most = cells.reduce((most, v) => Math.max(most, v ?? 0), 0);
    this.showSeries(Math.max(0, Math.floor(cells.indexOf(most) / this.from.length)));
    this.draw();
  }

  // largest returns that of the parts of each cell, or null.
  largest(measure) {
    return measure.parts[0]?.map((_, cell) => measure.parts.reduce((most, part) =>
      part[cell] === null || most !== null && most >= part[cell] ? most : part[cell], null)) ?? [];
  }

  choose(index) {
    this.chosen = index;
    this.buttons.forEach((b, i) => b.setAttribute("aria-pressed", i === index));
    this.paintScale();
    this.draw();
    if (this.shown !== null) this.showSeries(this.shown);
  }

  color(c) { return scheme.dark ? c.dark : c.light; }
  classOf(value) { return value === null ? null : this.measures[this.chosen].classes.findLast(c => value >= c.from[0]); }

  paintScale() {
    this.figure.querySelector(".scale").replaceChildren(...this.measures[this.chosen].classes.map(c => {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.style.background = this.color(c);
      item.append(swatch, c.name);
      return item;
    }));
  }

  // Drawing.

  measureOut() {
    const width = Math.max(200, this.host.clientWidth), rows = this.rows.length;
    const height = clamp(Math.floor(420 / Math.max(1, rows)), 4, 22);
    const left = Math.min(0.4 * width, 8 + Math.max(0, ...this.rows.map(textWidth)));
    this.box = { left, width: width - left - 4, height: height * rows };
    return { width, height: this.box.height + 24 };
  }

  draw() {
    const { width, height } = this.measureOut(), ratio = devicePixelRatio, { box } = this, colors = pageColors();
    Object.assign(this.canvas, { width: width * ratio, height: height * ratio });
    Object.assign(this.canvas.style, { width: width + "px", height: height + "px" });
    const ctx = this.canvas.getContext("2d");
    ctx.scale(ratio, ratio);
    ctx.imageSmoothingEnabled = false;
    if (this.rows.length && this.from.length) ctx.drawImage(this.picture(), box.left, 0, box.width, box.height);
    ctx.font = font;
    ctx.fillStyle = colors.soft;
    ctx.strokeStyle = colors.line;
    ctx.strokeRect(box.left, 0.5, box.width, box.height - 1);
    this.drawLabels(ctx);
    ctx.strokeStyle = colors.ink;
    if (this.shown !== null) this.frame(ctx, { row: this.shown, column: 0 }, this.from.length);
    ctx.lineWidth = 2;
    if (this.at) this.frame(ctx, this.at, 1);
  }

  // picture returns a pixel for each cell.
  picture() {
    const picture = document.createElement("canvas");
    Object.assign(picture, { width: this.from.length, height: this.rows.length });
    const ctx = picture.getContext("2d"), image = ctx.createImageData(picture.width, picture.height);
    this.cells[this.chosen].forEach((value, i) => {
      const c = this.classOf(value);
      if (c) image.data.set([1, 3, 5].map(at => parseInt(this.color(c).slice(at, at + 2), 16)).concat(255), 4 * i);
    });
    ctx.putImageData(image, 0, 0);
    return picture;
  }

  drawLabels(ctx) {
    const { box } = this, high = box.height / this.rows.length, wide = box.width / this.from.length;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    const every = Math.ceil(14 / high);
    this.rows.forEach((name, row) => {
      if (row % every === 0 && (row + 0.5) * high >= 7) ctx.fillText(this.cut(ctx, name, box.left - 8), box.left - 6, (row + 0.5) * high);
    });
    ctx.textAlign = "center";
    const widest = 18 + Math.max(0, ...this.from.map(x => textWidth(number(x))));
    const step = [1, 2, 5, 10, 20, 50, 100, 200].find(n => n * wide >= widest) ?? 200;
    this.from.forEach((x, column) => {
      const at = box.left + (column + 0.5) * wide;
      if (column % step === 0 && at + widest / 2 < box.left + box.width + 12) ctx.fillText(number(x), at, box.height + 14);
    });
  }

  cut(ctx, text, width) {
    if (ctx.measureText(text).width <= width) return text;
    while (text && ctx.measureText(text + "…").width > width) text = text.slice(0, -1);
    return text + "…";
  }

  frame(ctx, { row, column }, columns) {
    const { box } = this, high = box.height / this.rows.length, wide = box.width / this.from.length;
    ctx.strokeRect(box.left + column * wide, row * high, columns * wide, high);
  }

  // What a reader can do.

  listen() {
    const cell = event => {
      const r = this.canvas.getBoundingClientRect(), { box } = this;
      const row = Math.floor((event.clientY - r.top) / box.height * this.rows.length);
      const column = Math.floor((event.clientX - r.left - box.left) / box.width * this.from.length);
      const within = (n, length) => n >= 0 && n < length;
      return within(row, this.rows.length) && within(column, this.from.length) ? { row, column } : null;
    };
    this.canvas.addEventListener("pointermove", event => this.point(cell(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", event => {
      const r = this.canvas.getBoundingClientRect(), at = cell(event), row = Math.floor((event.clientY - r.top) / this.box.height * this.rows.length);
      if (at || event.clientX - r.left < this.box.left && row < this.rows.length) this.go(at ? at.row : row);
    });
    this.host.addEventListener("keydown", event => this.key(event));
    this.host.addEventListener("blur", () => this.point(null));
    new ResizeObserver(() => { if (this.host.clientWidth !== this.drawn) { this.drawn = this.host.clientWidth; this.draw(); } }).observe(this.host);
    scheme.watchers.push(() => { this.paintScale(); this.draw(); });
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.rows.length || !this.from.length) return;
    const at = this.at ?? { row: this.shown ?? 0, column: -1 }, many = event.shiftKey ? 10 : 1;
    const moves = {
      ArrowRight: [0, many], ArrowLeft: [0, -many], ArrowDown: [many, 0], ArrowUp: [-many, 0],
      Home: [0, -Infinity], End: [0, Infinity],
    };
    if (moves[event.key]) {
      const [down, right] = moves[event.key];
      this.point({ row: clamp(at.row + down, 0, this.rows.length - 1), column: clamp(at.column + right, 0, this.from.length - 1) });
      const values = [...this.figure.querySelectorAll(".cell > div")].map(line => line.textContent);
      this.figure.querySelector("output").textContent = this.figure.querySelector(".at").textContent + ": " + values.join("; ");
    } else if (event.key === "Enter" || event.key === " ") this.go(at.row);
    else if (event.key === "Escape") this.point(null);
    else return;
    event.preventDefault();
  }

  point(at) {
    if (at?.row === this.at?.row && at?.column === this.at?.column) return;
    this.at = at;
    this.draw();
    this.figure.querySelector(".at").textContent = at ? this.rows[at.row] + ", " + this.columnText(at.column) : "";
    this.figure.querySelector(".cell").replaceChildren(...(at ? this.measures.map(m => this.valuesOf(m, at)) : [this.hint()]));
  }

  hint() {
    const hint = document.createElement("div");
    hint.textContent = `Point at a cell, or move to it with the arrow keys, for its values. Click or press Enter for the curves of its ${this.row}.`;
    return hint;
  }

  columnText(column) {
    const from = number(this.from[column]), to = number(this.to[column]);
    return this.column + (from === to ? " " + from : "s " + from + " to " + to);
  }

  // valuesOf says what each part of a cell has of a measure and, where a cell is of many, where the largest is.
  valuesOf(measure, { row, column }) {
    const cell = row * this.from.length + column, line = document.createElement("div");
    const name = document.createElement("strong"), value = document.createElement("span");
    name.textContent = measure.name + " ";
    const of = this.parts.map((part, i) => [part.name, measure.parts[i][cell]]).filter(([, v]) => v !== null);
    value.textContent = of.map(([part, v]) => part + " " + this.text(v, measure)).join(", ") || "–";
    if (of.length && (this.names[measure.where[cell]] !== this.rows[row] || this.from[column] !== this.to[column])) {
      value.textContent += "; the largest in " + this.names[measure.where[cell]] + ", " + this.column + " " + number(measure.when[cell]);
    }
    line.append(name, value);
    return line;
  }

  text(value, measure) {
    if (value === Infinity) return "not finite";
    return Number(value.toPrecision(3)) + (measure.unit ? " " + measure.unit : "");
  }

  // go shows the curves of a row and leads there.
  go(row) {
    this.showSeries(row);
    this.draw();
    const plot = this.beside.querySelector(".plot");
    plot.focus({ preventScroll: true });
    plot.closest("figure").scrollIntoView({ block: "nearest" });
  }

  showSeries(row) {
    this.shown = row;
    const measure = this.measures[this.chosen], n = this.from.length, logY = measure.log;
    const values = part => part.slice(row * n, (row + 1) * n).map(v => v === null || v === Infinity || logY && v === 0 ? null : v);
    const series = this.parts.map((part, i) => ({
      ...part, mark: "line", dashed: false, width: 4 - i, x: this.from, y: values(measure.parts[i]), spread: null, names: null,
    }));
    const figure = document.createElement("figure");
    figure.className = "chart";
    figure.innerHTML = `<figcaption><span class="title"></span><span class="tools"></span></figcaption>
      <div class="above"><span class="axis-y"></span><span class="at"></span></div><div class="plot" role="img" tabindex="0"></div>
      <div class="axis-x"></div><div class="legend"></div><output class="unseen"></output>
      <details><summary>Data as a table</summary><div class="wide" tabindex="0" role="region" aria-label="Data"></div></details>`;
    const title = this.rows[row] + ": " + measure.name;
    const texts = { ".title": title, ".axis-y": measure.unit || measure.name, ".axis-x": this.column };
    for (const place in texts) figure.querySelector(place).textContent = texts[place];
    figure.querySelector(".plot").setAttribute("aria-label", "Chart: " + title);
    const data = document.createElement("script");
    data.type = "application/json";
    data.textContent = JSON.stringify({
      title, x: this.column, y: measure.unit || measure.name, logX: false, logY, base2: false, whole: true, labels: null, zero: !logY,
      smooth: false, stacked: false, least: 0, shared: null, lines: [], series,
    });
    figure.append(data);
    const details = figure.querySelector("details");
    details.addEventListener("toggle", () => this.fill(details.querySelector("div"), measure, row), { once: true });
    this.curves?.end();
    this.beside.replaceChildren(figure);
    this.curves = new Chart(figure);
  }

  fill(to, measure, row) {
    const table = document.createElement("table"), head = table.createTHead().insertRow();
    for (const name of [this.column, ...this.parts.map(part => part.name)]) {
      const cell = document.createElement("th");
      cell.textContent = name;
      head.append(cell);
    }
    const body = table.createTBody();
    this.from.forEach((_, column) => {
      const line = body.insertRow();
      line.insertCell().textContent = this.columnText(column).replace(/^\D*/, "");
      for (const part of measure.parts) {
        const v = part[row * this.from.length + column];
        line.insertCell().textContent = v === null ? "" : this.text(v, measure);
      }
    });
    to.replaceChildren(table);
  }

  // save returns what a reader has chosen, for restore on the same page when it has more.
  save() { return { chosen: this.chosen, row: this.rows[this.shown] ?? null, curves: this.curves?.save() }; }

  restore({ chosen, row, curves }) {
    this.choose(chosen);
    if (this.rows.includes(row)) this.showSeries(this.rows.indexOf(row));
    if (curves) this.curves?.restore(curves);
    this.draw();
  }
}

for (const figure of document.querySelectorAll("figure.heat")) views.push(new HeatMap(figure));

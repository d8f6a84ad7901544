// What uPlot does not draw by itself: marks, error bars, bars, lines of reference. Everything is drawn in device pixels.

// colors are those of the page in the scheme that it has now.
function pageColors() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const read = name => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  const colors = { ink: read("ink"), soft: read("soft"), line: read("line"), paper: read("paper") };
  probe.remove();
  return colors;
}

const glyphs = {
  dots(ctx, x, y, r) { ctx.beginPath(); ctx.arc(x, y, r, 0, 2 * Math.PI); ctx.fill(); },
  rings(ctx, x, y, r) { ctx.beginPath(); ctx.arc(x, y, r * 1.25, 0, 2 * Math.PI); ctx.stroke(); },
  crosses(ctx, x, y, r) {
    ctx.beginPath();
    ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r);
    ctx.moveTo(x - r, y + r); ctx.lineTo(x + r, y - r);
    ctx.stroke();
  },
  dashes(ctx, x, y, r) { ctx.beginPath(); ctx.moveTo(x - 2 * r, y); ctx.lineTo(x + 2 * r, y); ctx.stroke(); },
};
glyphs.joined = glyphs.dots;

// withinPlot calls draw with the drawing clipped to the plot and a margin for marks at its edge.
function withinPlot(u, draw) {
  const { ctx, bbox } = u, margin = 6 * uPlot.pxRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - margin, bbox.top - margin, bbox.width + 2 * margin, bbox.height + 2 * margin);
  ctx.clip();
  ctx.setLineDash([]); // uPlot leaves that of the last line
  draw(ctx, uPlot.pxRatio);
  ctx.restore();
}

// drawMarks draws the marks, error bars and bars of a curve.
function drawMarks(u, curve, color, share, bar) {
  withinPlot(u, (ctx, ratio) => {
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = 1.6 * ratio;
    const toX = x => u.valToPos(x, "x", true), toY = y => u.valToPos(y, "y", true);
    if (curve.mark === "bars") return drawBars(ctx, u, curve, toX, toY, share, bar);
    const glyph = glyphs[curve.mark] ?? glyphs.dots;
    const only = curve.mark === "line" ? curve.alone : null; // points between gaps, of which a line shows nothing
    curve.y.forEach((y, i) => {
      if (y === null || only && !only.has(i)) return;
      const x = toX(curve.x[i]);
      glyph(ctx, x, toY(y), (only ? 2 : 3.5) * ratio);
      if (curve.spread && curve.spread[i] > 0) drawSpread(ctx, x, y, curve.spread[i], toY, u.scales.y, ratio);
    });
  });
}

function drawSpread(ctx, x, y, spread, toY, scale, ratio) {
  const top = toY(y + spread), bottom = toY(scale.distr === 3 ? Math.max(y - spread, scale.min) : y - spread), cap = 4 * ratio;
  ctx.beginPath();
  ctx.moveTo(x, top); ctx.lineTo(x, bottom);
  ctx.moveTo(x - cap, top); ctx.lineTo(x + cap, top);
  ctx.moveTo(x - cap, bottom); ctx.lineTo(x + cap, bottom);
  ctx.stroke();
}

// drawBars draws bars of a width, or as wide as the smallest distance allows. share is [which, of how many] stand side by side.
function drawBars(ctx, u, curve, toX, toY, [which, many], bar) {
  const places = curve.x.map(toX);
  const slot = 0.9 * (bar ? toX(u.scales.x.min + bar) - toX(u.scales.x.min) : places.reduce((least, x, i) => i > 0 && x > places[i - 1] ? Math.min(least, x - places[i - 1]) : least, u.bbox.width / 8));
  const bottom = clamp(toY(u.scales.y.distr === 3 ? u.scales.y.min : 0), u.bbox.top, u.bbox.top + u.bbox.height);
  places.forEach((x, i) => {
    if (curve.y[i] === null) return;
    const y = toY(curve.top[i]), low = curve.base ? toY(curve.base[i]) : bottom;
    ctx.fillRect(x - slot / 2 + which * slot / many, Math.min(y, low), Math.max(1, slot / many), Math.abs(low - y));
  });
}

// drawReferences draws the zero line and the lines of reference.
function drawReferences(u, chart, colors) {
  withinPlot(u, (ctx, ratio) => {
    const { left, top, width, height } = u.bbox, right = left + width, bottom = top + height;
    const line = (x0, y0, x1, y1) => { ctx.beginPath(); ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); ctx.stroke(); };
    const y = u.scales.y;
    ctx.strokeStyle = colors.soft;
    ctx.lineWidth = ratio;
    if (y.distr !== 3 && y.min <= 0 && y.max >= 0) line(left, u.valToPos(0, "y", true), right, u.valToPos(0, "y", true));
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    for (const r of chart.lines) {
      const at = u.valToPos(r.value, r.vertical ? "x" : "y", true);
      if (r.vertical && at >= left && at <= right) line(at, top, at, bottom);
      if (!r.vertical && at >= top && at <= bottom) line(left, at, right, at);
    }
  });
}

// drawNames names the lines of reference, where there is room.
function drawNames(u, chart, colors) {
  const { ctx, bbox } = u, ratio = uPlot.pxRatio, taken = [];
  const right = bbox.left + bbox.width, bottom = bbox.top + bbox.height, height = 15 * ratio, gap = 4 * ratio;
  ctx.save();
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const r of chart.lines) {
    const at = u.valToPos(r.value, r.vertical ? "x" : "y", true), width = ctx.measureText(r.name).width;
    if (r.vertical ? at < bbox.left || at > right : at < bbox.top || at > bottom) continue;
    const places = r.vertical
      ? [0, 1, 2, 3].flatMap(row => [[at + gap, bbox.top + row * height], [at - gap - width, bbox.top + row * height]])
      : [right - gap - width, bbox.left + gap].flatMap(x => [[x, at - height - 1], [x, at + 1]]);
    const free = places.find(([x, y]) => x >= bbox.left && x + width <= right && y >= bbox.top - 2 && y + height <= bottom + 2 &&
      taken.every(t => x > t.x + t.width + gap || x + width + gap < t.x || y >= t.y + height || y + height <= t.y));
    if (!free) continue;
    const [x, y] = free;
    taken.push({ x, y, width });
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = colors.paper;
    ctx.fillRect(x - 2, y, width + 4, height);
    ctx.globalAlpha = 1;
    ctx.fillStyle = colors.soft;
    ctx.fillText(r.name, x, y + height / 2);
  }
  ctx.restore();
}

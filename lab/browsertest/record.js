// Before the page's own scripts: keep what text each canvas shows, for layout.js. A
// canvas forgets what it showed when it is cleared as a whole or given another size.
(() => {
  // Each page is opened for the first time: what another chose is forgotten.
  try { localStorage.clear(); } catch { /* there is none */ }

  const shown = new WeakMap();
  window.octavoTextOf = canvas => shown.get(canvas) || [];

  const context = CanvasRenderingContext2D.prototype;
  const fillText = context.fillText;
  context.fillText = function (text, x, y, ...rest) {
    fillText.call(this, text, x, y, ...rest);
    if (!String(text).trim()) return;
    const m = this.measureText(text), t = this.getTransform();
    const corners = [
      [x - m.actualBoundingBoxLeft, y - m.actualBoundingBoxAscent],
      [x + m.actualBoundingBoxRight, y - m.actualBoundingBoxAscent],
      [x - m.actualBoundingBoxLeft, y + m.actualBoundingBoxDescent],
      [x + m.actualBoundingBoxRight, y + m.actualBoundingBoxDescent],
    ].map(([x, y]) => t.transformPoint({ x, y }));
    const xs = corners.map(c => c.x), ys = corners.map(c => c.y);
    const all = shown.get(this.canvas) || [];
    all.push({
      text: String(text), color: this.fillStyle, font: this.font,
      corners: [corners[0], corners[1], corners[3], corners[2]],
      left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys),
    });
    shown.set(this.canvas, all);
  };

  const clearRect = context.clearRect;
  context.clearRect = function (x, y, width, height) {
    clearRect.call(this, x, y, width, height);
    if (width >= this.canvas.width && height >= this.canvas.height) shown.delete(this.canvas);
  };

  for (const side of ['width', 'height']) {
    const property = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, side);
    Object.defineProperty(HTMLCanvasElement.prototype, side, {
      ...property,
      set(value) { shown.delete(this); property.set.call(this, value); },
    });
  }
})();

// A function of the width of the window: what of the page is cut, too wide, too small,
// too pale, overlapping or blank.
(windowWidth => {
  const problems = [];
  const tolerance = 1.5; // pixels
  const smallest = 9; // pixels of a font

  const words = text => text.trim().replace(/\s+/g, ' ').slice(0, 60);
  const name = element => {
    const id = element.id ? '#' + element.id : '';
    const classes = [...element.classList].map(c => '.' + c).join('');
    return `<${element.tagName.toLowerCase()}${id}${classes}>`;
  };
  const visible = element => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });

  // Of colours.
  const pixel = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const channels = color => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = color;
    pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const background = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = channels(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const over = (front, back) => [0, 1, 2].map(i => (front[i] * front[3] + back[i] * (255 - front[3])) / 255);
  const contrast = (color, behind) => {
    const [a, b] = [luminance(over(channels(color), behind)), luminance(behind)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const readable = (what, color, element) => {
    const ratio = contrast(color, background(element));
    if (ratio < 4.5) problems.push(`contrast of ${ratio.toFixed(1)}: ${what}`);
  };

  // Of boxes.
  const outside = (inner, outer) =>
    inner.left < outer.left - tolerance || inner.right > outer.right + tolerance ||
    inner.top < outer.top - tolerance || inner.bottom > outer.bottom + tolerance;
  const cornersOf = ({ left, top, right, bottom, corners }) => corners ??
    [{ x: left, y: top }, { x: right, y: top }, { x: right, y: bottom }, { x: left, y: bottom }];
  // apart reports whether a line along a side of the first box, which may be slanted, parts the two.
  const apart = (a, b) => [0, 1].some(i => {
    const [dx, dy] = [a[i + 1].x - a[i].x, a[i + 1].y - a[i].y], length = Math.hypot(dx, dy) || 1;
    const along = corners => corners.map(({ x, y }) => (x * dx + y * dy) / length);
    const [p, q] = [along(a), along(b)];
    return Math.min(Math.max(...p), Math.max(...q)) - Math.max(Math.min(...p), Math.min(...q)) <= tolerance;
  });
  const overlap = (a, b) => !apart(cornersOf(a), cornersOf(b)) && !apart(cornersOf(b), cornersOf(a));
  const overlaps = (where, texts) => {
    for (let i = 0; i < texts.length; i++)
      for (let j = 0; j < i; j++)
        if (overlap(texts[i], texts[j]))
          problems.push(`overlap: ${words(texts[j].text)} and ${words(texts[i].text)} in ${where}`);
  };

  // clips returns what may cut what is inside of element, from the innermost outward:
  // {element, box, x, y}, x and y being what it does with what is wider and higher. It
  // ends where what is inside is for screen readers only, of one pixel.
  const known = new Map();
  const hides = overflow => overflow === 'hidden' || overflow === 'clip';
  const clips = element => {
    if (!element || element === document.documentElement) return [];
    if (known.has(element)) return known.get(element);
    const style = getComputedStyle(element), x = style.overflowX, y = style.overflowY;
    let all = clips(element.parentElement);
    if (x !== 'visible' || y !== 'visible') {
      const box = element.getBoundingClientRect();
      const unseen = (hides(x) || hides(y)) && box.width <= 1 && box.height <= 1;
      all = unseen ? null : all && [{ element, box, x, y }, ...all];
    }
    known.set(element, all);
    return all;
  };

  // clipper returns what cuts a box inside of element, or null. What can be scrolled to
  // is not cut.
  const clipper = (element, box) => {
    const all = clips(element);
    if (!all) return null;
    for (const { element: by, box: r, x, y } of all) {
      if (hides(x) && (box.left < r.left - tolerance || box.right > r.right + tolerance)) return by;
      if (hides(y) && (box.top < r.top - tolerance || box.bottom > r.bottom + tolerance)) return by;
      if (!hides(x) || !hides(y)) box = r;
    }
    const off = box.left < -tolerance || box.right > windowWidth + tolerance;
    return off ? document.documentElement : null;
  };

  // The page as a whole.
  const whole = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
  if (whole > windowWidth) {
    const wide = [...document.body.querySelectorAll('*')].filter(e =>
      visible(e) && e.getBoundingClientRect().right > windowWidth + tolerance && clipper(e, e.getBoundingClientRect()));
    problems.push(`overflow: the page is ${whole} pixels wide: ${wide.slice(0, 3).map(name).join(' ')}`);
  }

  // Text of HTML. That of pictures, whose size the picture may set, is below.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('script,style,template,svg') || !visible(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter(r => r.width > 0 && r.height > 0);
    if (boxes.length === 0) continue;
    for (const box of boxes) {
      const by = clipper(element, box);
      if (by) {
        problems.push(`cut: "${words(node.data)}" by ${name(by)}`);
        break;
      }
    }
    if (parseFloat(getComputedStyle(element).fontSize) < smallest) problems.push(`small: "${words(node.data)}"`);
  }
  for (const e of document.body.querySelectorAll('*:not(svg *)')) {
    const style = getComputedStyle(e);
    const hides = ['hidden', 'clip'].includes(style.overflowX);
    if (hides && e.clientWidth > 1 && e.scrollWidth > e.clientWidth + 1 && e.textContent.trim() && visible(e))
      problems.push(`cut: ${name(e)} shows ${e.clientWidth} of ${e.scrollWidth} pixels`);
  }

  // slanted returns the corners of a text of a picture, on the screen.
  const slanted = text => {
    const { x, y, width, height } = text.getBBox(), matrix = text.getScreenCTM();
    return [[x, y], [x + width, y], [x + width, y + height], [x, y + height]].map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix));
  };

  // Pictures.
  for (const svg of document.querySelectorAll('svg')) {
    if (!visible(svg)) continue;
    const frame = svg.getBoundingClientRect();
    if (frame.width < 1 || frame.height < 1) {
      problems.push(`blank: ${name(svg)} has no size`);
      continue;
    }
    const texts = [];
    for (const text of svg.querySelectorAll('text')) {
      if (!text.textContent.trim() || !visible(text)) continue;
      const r = text.getBoundingClientRect(), size = parseFloat(getComputedStyle(text).fontSize) * Math.hypot(text.getScreenCTM().a, text.getScreenCTM().b);
      texts.push({ text: text.textContent, corners: slanted(text) });
      if (outside(r, frame)) problems.push(`cut: "${words(text.textContent)}" by ${name(svg)}`);
      if (size < smallest) problems.push(`small: "${words(text.textContent)}" of ${size.toFixed(1)} pixels in ${name(svg)}`);
      readable(`"${words(text.textContent)}" in ${name(svg)}`, getComputedStyle(text).fill, svg.parentElement);
    }
    overlaps(name(svg), texts);
    const by = clipper(svg.parentElement, frame);
    if (by) problems.push(`cut: ${name(svg)} by ${name(by)}`);
  }
  for (const canvas of document.querySelectorAll('canvas')) {
    if (!visible(canvas)) continue;
    const frame = { left: 0, top: 0, right: canvas.width, bottom: canvas.height };
    if (canvas.width < 1 || canvas.height < 1) {
      problems.push(`blank: ${name(canvas)} has no size`);
      continue;
    }
    const data = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    if (data.every(v => v === data[0])) problems.push(`blank: ${name(canvas)}`);
    const texts = window.octavoTextOf(canvas);
    for (const text of texts) {
      if (outside(text, frame)) problems.push(`cut: "${words(text.text)}" by ${name(canvas)}`);
      readable(`"${words(text.text)}" in ${name(canvas)}`, text.color, canvas);
    }
    overlaps(name(canvas), texts);
    const r = canvas.getBoundingClientRect();
    const by = clipper(canvas.parentElement, r);
    if (by) problems.push(`cut: ${name(canvas)} by ${name(by)}`);
  }
  return [...new Set(problems)];
})

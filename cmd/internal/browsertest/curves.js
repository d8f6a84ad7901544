// A function that says which lines of the page's charts cannot be seen: fewer than a few
// pixels of the canvas have their colour. That of others than FP32 may be so where they
// run with another.
(() => {
  const fewest = 3; // pixels
  const nearness = 24; // of the channels of a colour
  const near = 0.02; // of the height of a chart

  // together reports whether two curves are at the same places for the most part.
  const together = (a, b, height) => a !== b && a.y.length === b.y.length &&
    a.y.filter((y, i) => Math.abs(y - b.y[i]) <= near * height).length > a.y.length / 2;
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark' ||
    !document.documentElement.dataset.scheme && matchMedia('(prefers-color-scheme: dark)').matches;
  const problems = [];
  for (const figure of document.querySelectorAll('figure.chart')) {
    const canvas = figure.querySelector('canvas');
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    if (!canvas) {
      problems.push(`blank: "${data.title}" has no canvas`);
      continue;
    }
    const { data: pixels } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const all = data.series.flatMap(series => series.y).filter(y => y !== null);
    const height = Math.max(...all) - Math.min(...all);
    for (const series of data.series) {
      const joins = series.mark === 'line' || series.mark === 'joined';
      if (!joins || !series.y.some(y => y !== null)) continue;
      if (!series.name.startsWith('FP32') && data.series.some(other => together(series, other, height))) continue;
      const color = dark ? series.dark : series.light;
      const [r, g, b] = [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16));
      let seen = 0;
      for (let i = 0; i < pixels.length && seen < fewest; i += 4) {
        if (pixels[i + 3] > 128 && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < nearness) seen++;
      }
      if (seen < fewest) problems.push(`hidden: curve "${series.name}" of "${data.title}"`);
    }
  }
  return problems;
})()

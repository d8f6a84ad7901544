// A function that says which charts of the page show no curve, and where FP32 is hidden
// by others: no more than a few pixels of the canvas have the colour.
(() => {
  const fewest = 3; // pixels
  const nearness = 24; // of the channels of a colour
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark' ||
    !document.documentElement.dataset.scheme && matchMedia('(prefers-color-scheme: dark)').matches;
  const problems = [];
  for (const figure of document.querySelectorAll('figure.chart:not(.heat)')) {
    const canvas = figure.querySelector('canvas');
    const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
    if (!canvas) {
      problems.push(`blank: "${data.title}" has no canvas`);
      continue;
    }
    const { data: pixels } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = series => {
      const color = dark ? series.dark : series.light;
      const [r, g, b] = [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16));
      let count = 0;
      for (let i = 0; i < pixels.length && count < fewest; i += 4) {
        if (pixels[i + 3] > 128 && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < nearness) count++;
      }
      return count >= fewest;
    };
    const drawn = data.series.filter(series => series.y.some(y => y !== null));
    if (drawn.length && !drawn.some(seen)) problems.push(`blank: "${data.title}" shows no curve`);
    for (const series of drawn) {
      if (series.mark === 'line' && series.name === 'FP32' && !seen(series)) problems.push(`hidden: FP32 of "${data.title}"`);
    }
  }
  return problems;
})()

// Places and labels of the ticks of axes, like those of the static pictures.

// ticks returns [{at, label}] for an axis from low to high with at most so many labels. Minor ticks have none.
function ticks(low, high, most, { log, base2, whole }) {
  if (!(low < high)) return [];
  return log ? logTicks(low, high, most, base2) : linearTicks(low, high, most, whole);
}

// linearTicks stand at multiples of 1, 2 or 5 times a power of ten: at 0 too, if the axis has it.
function linearTicks(low, high, most, whole) {
  let step = niceStep(low, high, most);
  if (whole) step = Math.max(1, step);
  const places = [];
  const last = Math.floor(high / step + 1e-9);
  for (let i = Math.ceil(low / step - 1e-9); i <= last; i++) places.push(i * step);
  return places.map(at => ({ at, label: linearLabel(at, step, Math.max(...places.map(Math.abs))) }));
}

function niceStep(low, high, most) {
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  for (const factor of [1, 2, 5]) {
    const step = factor * power;
    if (Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1 <= most) return step;
  }
  return 10 * power;
}

// linearLabel has as many digits as tell the multiples of step apart.
function linearLabel(at, step, largest) {
  if (Math.abs(at) < step / 2) return "0";
  const last = Math.floor(Math.log10(step) + 1e-9);
  if (largest >= 1e6 || largest < 1e-3) {
    return short(at.toExponential(clamp(Math.floor(Math.log10(Math.abs(at)) + 1e-9) - last, 0, 15)));
  }
  return at.toFixed(clamp(-last, 0, 15));
}

// logTicks stand at powers of ten, or of two; where there are fewer than three, at 2 and 5 times them too, or like
// those of a linear axis.
function logTicks(low, high, most, base2) {
  const enough = all => { const n = all.filter(t => t.label).length; return n >= 3 && n <= Math.max(most, 3); };
  for (const base of base2 ? [2, 10] : [10]) {
    const all = powers(low, high, base, most);
    if (enough(all)) return all;
  }
  for (const factors of [[1, 3], [1, 2, 5]]) {
    const all = decades(low, high, factor => factors.includes(factor));
    if (enough(all)) return all;
  }
  return linearTicks(low, high, most, false);
}

// powers labels powers of a base, or each second, third, ... of them.
function powers(low, high, base, most) {
  const first = Math.ceil(Math.log(low) / Math.log(base) - 1e-9), last = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first + 1) / most));
  if (base === 10 && last - first < 6) return decades(low, high, factor => factor === 1);
  const all = [];
  for (let e = first; e <= last; e++) all.push({ at: base ** e, label: e % stride === 0 ? roundNumber(base ** e) : "" });
  return all;
}

// decades returns 1 to 9 times each power of ten, labelled where the factor is chosen.
function decades(low, high, chosen) {
  const all = [];
  for (let e = Math.floor(Math.log10(low)); 10 ** e <= high; e++) {
    for (let factor = 1; factor < 10; factor++) {
      const at = Number(factor + "e" + e);
      if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) all.push({ at, label: chosen(factor) ? roundNumber(at) : "" });
    }
  }
  return all;
}

function roundNumber(x) { return x >= 1e6 || x < 1e-3 ? short(x.toExponential()) : String(x); }

// short returns 1.50e+6 as 1.5e6.
function short(text) {
  const [mantissa, exponent] = text.split("e");
  return (mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa) + "e" + Number(exponent);
}

// number returns a figure for people.
function number(x) {
  if (x == null) return "–";
  if (x !== 0 && (Math.abs(x) >= 1e6 || Math.abs(x) < 1e-4)) return short(x.toExponential(4));
  return String(Number(x.toPrecision(5)));
}

function clamp(x, low, high) { return Math.min(Math.max(x, low), high); }

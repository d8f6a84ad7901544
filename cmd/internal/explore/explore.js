// Asks the library when something changes, and shows what it answers.
const ask = document.getElementById("ask"), field = ask.elements, problem = document.getElementById("problem");
let file, asked = 0, later;

const request = () => ({
  Values: file ? "" : field.Values.value,
  Tensor: field.Tensor.value,
  Format: field.Format.value,
  Policy: { Rounding: field.Rounding.value, Overflow: field.Overflow.value, Inf: field.Inf.value, NaN: field.NaN.value, Zero: field.Zero.value },
  At: Math.trunc(Number(field.At.value)) || 1,
  Method: field.Method.value,
  Strength: Number(field.Strength.value),
});

const show = answer => {
  for (const [id, html] of Object.entries(answer.Parts)) document.getElementById(id).innerHTML = html;
  document.querySelectorAll(".wide").forEach(element => scrolls.observe(element));
  field.At.max = answer.Values;
  field.At.value = Math.min(Math.max(field.At.value, 1), answer.Values);
  const names = answer.Tensors ?? [], tensor = field.Tensor;
  if (names.length !== tensor.options.length || names.some((name, i) => tensor.options[i].value !== name))
    tensor.replaceChildren(...names.map(name => new Option(name, name)));
  tensor.value = answer.Tensor;
  tensor.closest("label").hidden = names.length === 0;
  field.Values.disabled = Boolean(file);
};

const update = async () => {
  const mine = ++asked;
  let answer;
  try {
    answer = await octavo("explore", request(), file);
  } catch (error) {
    if (mine === asked) problem.textContent = (file ? file.name + ": " : "") + error.message;
    return;
  }
  if (mine !== asked) return; // something else was asked meanwhile
  problem.textContent = "";
  show(answer);
};

const take = taken => {
  file = taken;
  field.back.hidden = !file;
  if (!file) field.file.value = "";
  update();
};

document.addEventListener("input", ({ target }) => {
  if (target.form !== ask || target === field.file) return;
  if (target === field.example) {
    if (!target.value) return;
    field.Values.value = target.value;
    take(undefined);
    return;
  }
  if (target === field.Strength) field.Method.value = "smoothquant";
  if (target === field.Strength) target.nextElementSibling.value = target.value;
  clearTimeout(later);
  later = setTimeout(update, 150); // people type on
});
ask.addEventListener("submit", event => event.preventDefault());
field.file.addEventListener("change", () => field.file.files[0] && take(field.file.files[0]));
field.back.addEventListener("click", () => take(undefined));
document.addEventListener("dragover", event => event.preventDefault());
document.addEventListener("drop", event => {
  event.preventDefault();
  if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
});

// A click on a cell looks at its value.
document.getElementById("blocks").addEventListener("click", event => {
  const svg = event.target.closest("svg.cells");
  if (!svg) return;
  const box = svg.getBoundingClientRect(), { rows, cols, of } = svg.dataset;
  const at = (from, to, x, n) => Math.min(Math.max(Math.floor((x - from) / (to - from) * n), 0), n - 1);
  field.At.value = at(box.top, box.bottom, event.clientY, rows) * of + at(box.left, box.right, event.clientX, cols) + 1;
  update();
});

const image = document.getElementById("map"), hover = document.getElementById("hover"), map = image.parentElement;
const cells = document.getElementById("cells").textContent.split("\n").map(line => line.split(" "));
const range = (first, step, end) => first + "–" + (Math.min(first + step, end) - 1);
const cursor = document.createElement("div");
cursor.className = "cursor";
let place = null; // of the cursor, [down, across]

// show says what a cell holds.
function show(down, across) {
  if (cells[down]?.[across] === undefined) return;
  place = [down, across];
  let text = manyRows + " " + range(down * height, height, rows) + ", " + manyCols + " " + range(across * width, width, cols);
  if (height === 1 && width === 1) text = oneRow + " " + down + ", " + oneCol + " " + across;
  if (cells[down][across] === "-") { hover.textContent = text + ": not looked at"; return; }
  if (cells[down][across] === "") { hover.textContent = text + ": no error"; return; }
  const [error, inside, outside] = cells[down][across].split(",");
  if (height > 1 || width > 1) text += ": largest at (" + (down * height + Math.floor(inside / width)) + ", " + (across * width + inside % width) + ")";
  hover.textContent = text + ": " + error + " " + unit + (outside > 0 ? ", " + outside + " outside" : "");
}

image.addEventListener("pointermove", event => {
  const box = image.getBoundingClientRect();
  cursor.remove();
  show(Math.floor((event.clientY - box.top) / box.height * cells.length), Math.floor((event.clientX - box.left) / box.width * cells[0].length));
});
image.addEventListener("pointerleave", () => { hover.textContent = "\u00a0"; });
map.addEventListener("blur", () => { cursor.remove(); });

// The arrow keys go from cell to cell.
const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
map.addEventListener("keydown", event => {
  const step = steps[event.key];
  if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const many = event.shiftKey ? 10 : 1, within = (x, n) => Math.min(Math.max(x, 0), n - 1);
  if (place === null) show(0, 0);
  else show(within(place[0] + many * step[0], cells.length), within(place[1] + many * step[1], cells[0].length));
  const percent = (x, n) => 100 * x / n + "%";
  Object.assign(cursor.style, {
    top: percent(place[0], cells.length), height: percent(1, cells.length),
    left: percent(place[1], cells[0].length), width: percent(1, cells[0].length),
  });
  map.append(cursor);
});

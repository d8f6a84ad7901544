// Sliders, which ask the command's own code what it would say with other flags.
const whatIf = document.getElementById("what-if"), asked = JSON.parse(document.getElementById("asked").textContent);
const refused = document.getElementById("refused"), flags = [...whatIf.querySelectorAll("[name]")];
const valueOf = flag => flag.dataset.values ? flag.dataset.values.split(" ")[flag.value] : flag.value;
let turn = 0, later; // of the last question: answers to others are late

async function ask() {
  const mine = ++turn;
  let answer;
  try {
    answer = await octavo("plan", { ask: asked, values: Object.fromEntries(flags.map(flag => [flag.name, valueOf(flag)])) });
  } catch (error) {
    answer = { refused: error.message };
  }
  if (mine !== turn) return;
  refused.textContent = answer.refused ? answer.refused[0].toUpperCase() + answer.refused.slice(1) + "." : "";
  if (answer.command) document.getElementById("command").textContent = answer.command;
  for (const part of ["head", "main"]) {
    const element = document.getElementById(part);
    element.classList.toggle("stale", Boolean(answer.refused));
    if (answer[part]) element.innerHTML = answer[part];
  }
  if (answer.main) {
    drawCharts(document.getElementById("main"));
    document.querySelectorAll("#main .wide").forEach(element => scrolls.observe(element));
  }
  whatIf.dataset.answered = mine;
}

const showFlag = flag => {
  if (flag.nextElementSibling) flag.nextElementSibling.textContent = flag.name === "ranks" && valueOf(flag) === "0" ? "fewest" : valueOf(flag);
};
for (const flag of flags) {
  showFlag(flag);
  flag.addEventListener("input", () => {
    showFlag(flag);
    clearTimeout(later);
    later = setTimeout(ask, 150); // sliders move on
  });
}
whatIf.hidden = false;

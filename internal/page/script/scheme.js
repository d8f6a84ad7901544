// A switch between light and dark. Without it the page follows the browser.
const scheme = {
  system: matchMedia("(prefers-color-scheme: dark)"),
  get dark() {
    const chosen = document.documentElement.dataset.scheme;
    return chosen ? chosen === "dark" : this.system.matches;
  },
  watchers: [], // are called when it changes
  changed() { for (const watcher of this.watchers) watcher(); },
};

const views = []; // what readers choose in: save returns what they did, and restore does that again

// Pages in files may not remember anything.
const remembered = {
  get() { try { return localStorage.getItem("octavo-scheme"); } catch { return null; } },
  set(value) { try { localStorage.setItem("octavo-scheme", value); } catch { /* the choice is for this page only */ } },
};

if (remembered.get()) document.documentElement.dataset.scheme = remembered.get();
scheme.system.addEventListener("change", () => scheme.changed());

const schemeButton = document.createElement("button");
schemeButton.type = "button";
scheme.watchers.push(() => { schemeButton.textContent = scheme.dark ? "Light colours" : "Dark colours"; });
schemeButton.addEventListener("click", () => {
  document.documentElement.dataset.scheme = scheme.dark ? "light" : "dark";
  remembered.set(document.documentElement.dataset.scheme);
  scheme.changed();
});
document.querySelector("header").append(schemeButton);
scheme.changed();

// What scrolls can be scrolled by keys too.
const scrolls = new ResizeObserver(entries => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
document.querySelectorAll(".wide, pre").forEach(element => scrolls.observe(element));

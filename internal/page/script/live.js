// A page of what goes on is written again and again. This shows the newest, as the reader left it, but not while the
// reader does something, and ever more rarely where it is not written any more. Whether it is, its age says when it is
// loaded: what is on show gets older while a reader does something, too.
const live = (() => {
  const status = document.querySelector(".live"), { written, every, late } = status.dataset;
  const said = status.querySelector(".late"), name = status.querySelector("strong");
  const loaded = Date.now(), age = (loaded - written) / 1000, isLate = age > late;
  let touched = 0;
  for (const what of ["pointerdown", "pointermove", "wheel", "touchmove", "keydown"]) {
    addEventListener(what, () => { touched = Date.now(); }, { capture: true, passive: true });
  }

  const stops = () => [...document.querySelectorAll("a, button, input, summary, [tabindex]")];
  const details = () => [...document.querySelectorAll("details")];
  function keep() {
    history.replaceState({
      title: document.title, scroll: scrollY, views: views.map(view => view.save()),
      open: details().map(d => d.open), focus: stops().indexOf(document.activeElement),
      size: [views.length, details().length, stops().length],
    }, "");
  }

  // restore does what the reader did, where the page has the same parts as before.
  function restore() {
    const kept = history.state;
    if (kept?.title !== document.title) return;
    const [many, folded, ends] = kept.size;
    if (many === views.length) views.forEach((view, i) => view.restore(kept.views[i]));
    if (folded === details().length) details().forEach((d, i) => { d.open = kept.open[i]; });
    if (ends === stops().length && kept.focus >= 0) stops()[kept.focus].focus({ preventScroll: true });
    scrollTo(0, kept.scroll);
  }

  function span(seconds) {
    if (seconds < 120) return Math.round(seconds) + " seconds";
    if (seconds < 7200) return Math.round(seconds / 60) + " minutes";
    return Math.round(seconds / 3600) + " hours";
  }

  function say() {
    if (!isLate) return;
    name.textContent = name.textContent.replace("Running", "Was running");
    said.textContent = ` It was not written again for ${span(age)}: the run was stopped or killed, or a step takes long, or this computer's clock is ahead.`;
    status.classList.add("bad");
  }

  function look() {
    const wait = isLate ? Math.max(every, age / 4) : Number(every), since = (Date.now() - loaded) / 1000;
    const busy = document.hidden || Date.now() - touched < 3000 || !getSelection().isCollapsed;
    if (since < wait || busy) return;
    keep();
    location.reload();
  }
  return { begin() { history.scrollRestoration = "manual"; restore(); say(); setInterval(look, 1000); } };
})();

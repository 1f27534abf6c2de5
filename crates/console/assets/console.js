// Everything here adds to pages that work without it: live updates, the palette, keys, copying.

const home = document.body.dataset.home ?? "";

/** Replaces the parts of the page that changed, and keeps focus, scroll positions, open menus and what is being typed. */
function renew(fresh) {
  const incoming = fresh.querySelector("main");
  const main = document.querySelector("main");
  if (!incoming || !main) return;
  merge(main, incoming);
  document.title = fresh.title;
}

function merge(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.matches("dialog, late-part") || old.matches("form") && old.querySelector("input:not([type=hidden]), select, textarea")) return;
  // Whoever is about to press a button must not send another form than the one that the button names.
  if (old.matches("form") && old.contains(document.activeElement) && old.getAttribute("action") !== fresh.getAttribute("action")) return;
  const sameShape = old.children.length === fresh.children.length && old.children.length > 0 &&
    [...old.children].every((child, at) => child.tagName === fresh.children[at].tagName && child.id === fresh.children[at].id) &&
    ownText(old) === ownText(fresh);
  if (!sameShape) {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (focused?.matches("input, textarea, select, [contenteditable]")) return;
    mergeAttributes(old, fresh);
    const key = focused?.id ? `#${CSS.escape(focused.id)}` : focused?.getAttribute("href") ? `a[href="${CSS.escape(focused.getAttribute("href"))}"]` : null;
    const open = new Set([...old.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
    old.innerHTML = fresh.innerHTML;
    for (const summary of old.querySelectorAll("details > summary")) if (open.has(summary.textContent)) summary.parentElement.open = true;
    if (key) old.querySelector(key)?.focus({ preventScroll: true });
    return;
  }
  mergeAttributes(old, fresh);
  [...old.children].forEach((child, at) => {
    const next = fresh.children[at];
    if (child.isEqualNode(next)) return;
    if (child.children.length === 0 && !child.contains(document.activeElement)) child.replaceWith(next.cloneNode(true));
    else merge(child, next);
  });
}

function mergeAttributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
}

function ownText(element) {
  return [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("|");
}

/** Whether an event came after another one, by their ids. */
function isAfter(one, other) {
  const [[transaction, number], [otherTransaction, otherNumber]] = [one, other].map((id) => id.split("-").map(Number));
  return transaction === otherTransaction ? number > otherNumber : transaction > otherTransaction;
}

const MOST_TOLD = 100;

/**
 * Reads the page again when something that it shows has changed; several changes at once are one reading. Browsers allow few
 * connections to one server, so one tab follows the events and tells the others. A page names the last event before it was
 * made: what happened since then is told to it, and what it shows already is not.
 */
function follow() {
  const shown = document.body.dataset.live;
  if (shown === undefined || !home) return;
  let seen = document.body.dataset.seen ?? "";
  let pending = null;
  let isReading = false;
  let last = 0;
  const read = async () => {
    pending = null;
    if (isReading) return later(2000);
    isReading = true;
    await readAgain().finally(() => { isReading = false; });
  };
  const later = (millis) => { pending ??= setTimeout(read, millis); };
  const isFollowingLines = () => document.querySelector("[data-follow][aria-pressed=true]");
  const readAgain = async () => {
    if (isFollowingLines()) return later(2000);
    last = Date.now();
    const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (response?.redirected && new URL(response.url).pathname === "/sign-in") return location.reload();
    const text = response?.ok ? await response.text().catch(() => null) : null;
    if (isFollowingLines()) return later(2000);
    if (text !== null) {
      const fresh = new DOMParser().parseFromString(text, "text/html");
      renew(fresh);
      see(fresh.body.dataset.seen);
    } else if (!response || response.ok || response.status === 429 || response.status >= 500) later(5000);
    askAgain();
  };
  const askAgain = () => { asking = null; document.querySelectorAll("late-part").forEach((part) => part.load()); };
  let asking = null;
  const see = (id) => { if (id && (!seen || isAfter(id, seen))) seen = id; };
  const hear = ({ id, deployment }) => {
    if (id && seen && !isAfter(id, seen)) return;
    see(id);
    if (deployment.startsWith("runs:")) {
      if (shown && deployment === `runs:${shown}` && document.querySelector('late-part[src*="/dags/"]')) asking ??= setTimeout(askAgain, 5000);
      return;
    }
    if (deployment === "*" || !shown || shown === deployment) later(Math.max(150, last + 2000 - Date.now()));
  };
  const channel = new BroadcastChannel(`podium:${home}`);
  let repeat = () => {};
  channel.onmessage = ({ data }) => {
    if (data.leads) channel.postMessage({ after: seen });
    else if (data.after === undefined) hear(data);
    else repeat(data.after);
  };
  channel.postMessage({ after: seen });
  const lead = () => new Promise(() => {
    const told = [];
    let forgotten = seen;
    let source = null;
    // A page may have been made before this one began to follow, or have begun to listen only now.
    repeat = (after) => {
      if (after && forgotten && isAfter(forgotten, after)) channel.postMessage({ id: seen, deployment: "*" });
      else for (const one of told) if (!after || isAfter(one.id, after)) channel.postMessage(one);
    };
    const tell = (message) => {
      channel.postMessage(message);
      hear(message);
      if (message.id && told.push(message) > MOST_TOLD) forgotten = told.shift().id;
    };
    const open = (after) => {
      source = new EventSource(`${home}/events${after ? `?cursor=${encodeURIComponent(after)}` : ""}`);
      // Without a beginning nobody knows what was missed: everybody looks once.
      if (!after) source.onopen = () => tell({ deployment: "*" });
      source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(() => open(""), 30_000); };
      source.onmessage = (message) => {
        const event = JSON.parse(message.data);
        // There may be a lot of what runs inside environments: only pages that ask Airflow hear of it.
        const [, kind] = event.type.split(".");
        if (kind === "dag_run") tell({ id: event.id, deployment: `runs:${event.data?.deploymentId}` });
        else if (kind !== "task") tell({ id: event.id, deployment: event.data?.deploymentId ?? "" });
      };
    };
    open(seen);
    channel.postMessage({ leads: true });
    addEventListener("pagehide", () => source.close());
  });
  if (navigator.locks) navigator.locks.request(`podium:${home}`, lead);
  else lead();
}

/** A part of a page that has to ask an environment: it comes in after the page, and again when something has happened. */
class LatePart extends HTMLElement {
  connectedCallback() {
    this.querySelector(".quiet")?.replaceChildren("Loading…");
    this.load();
  }

  /** Loads it, but not often, and not while nobody looks. */
  async load() {
    if (this.ariaBusy === "true" || this.later) return;
    const early = (this.asked ?? 0) + 5000 - Date.now();
    if (early > 0 || document.hidden) {
      this.later = true;
      const again = () => { this.later = false; this.load(); };
      if (early > 0) setTimeout(again, early);
      else addEventListener("visibilitychange", again, { once: true });
      return;
    }
    this.asked = Date.now();
    this.ariaBusy = "true";
    const response = await fetch(this.getAttribute("src"), { headers: { accept: "text/html" } }).catch(() => null);
    this.ariaBusy = "false";
    if (response?.redirected) { location.reload(); return; }
    const fresh = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html").body.firstElementChild : null;
    const old = this.firstElementChild;
    if (fresh && old?.className === fresh.className) merge(old, fresh);
    else if (fresh) this.replaceChildren(fresh);
    else this.querySelector(".wait .quiet")?.replaceChildren("The server could not answer: load the page again.");
  }
}

/** Shows how long ago things were as time goes by. */
function tick() {
  const now = Date.now();
  for (const element of document.querySelectorAll("time[datetime]")) {
    const seconds = Math.round((now - Date.parse(element.dateTime)) / 1000);
    const size = Math.abs(seconds);
    const span = size < 60 ? `${size} s` : size < 3600 ? `${Math.floor(size / 60)} min`
      : size < 86400 ? `${Math.floor(size / 3600)} h` : `${Math.floor(size / 86400)} d`;
    const text = size < 5 ? "now" : seconds > 0 ? `${span} ago` : `in ${span}`;
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The palette: go to anything by name. */
class Palette {
  constructor() {
    this.dialog = document.createElement("dialog");
    this.dialog.className = "palette";
    this.dialog.setAttribute("aria-label", "Go to");
    this.input = document.createElement("input");
    Object.assign(this.input, { type: "text", placeholder: "Go to a page or a deployment…", autocomplete: "off", spellcheck: false });
    this.input.setAttribute("role", "combobox");
    this.input.setAttribute("aria-expanded", "true");
    this.input.setAttribute("aria-controls", "palette-list");
    this.input.setAttribute("aria-label", "Go to a page or a deployment");
    this.list = document.createElement("ul");
    this.list.id = "palette-list";
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Places");
    this.dialog.append(this.input, this.list);
    document.body.append(this.dialog);
    this.input.addEventListener("input", () => this.show());
    this.dialog.addEventListener("keydown", (event) => this.key(event));
    this.dialog.addEventListener("click", (event) => { if (event.target === this.dialog) this.dialog.close(); });
  }

  async open() {
    this.input.value = "";
    this.dialog.showModal();
    this.places ??= [...document.querySelectorAll("#navigation a")].map((link) => ({ name: link.textContent, href: link.href, kind: "Page" }));
    this.show();
    const response = await fetch(`${home}/places`, { headers: { accept: "application/json" } });
    if (!response.ok) return;
    const pages = this.places.filter((place) => place.kind === "Page");
    this.places = pages.concat(await response.json());
    this.show();
  }

  show() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (place) => words.every((word) => place.name.toLowerCase().includes(word));
    this.found = this.places.filter(fits).slice(0, 50);
    this.at = 0;
    this.list.replaceChildren(...this.found.map((place, at) => {
      const item = document.createElement("li");
      item.id = `place-${at}`;
      item.setAttribute("role", "option");
      const link = document.createElement("a");
      link.href = place.href;
      link.tabIndex = -1;
      const kind = document.createElement("small");
      kind.textContent = place.kind;
      link.append(place.name, kind);
      item.append(link);
      return item;
    }));
    this.select(0);
  }

  select(at) {
    if (!this.found.length) return;
    this.at = (at + this.found.length) % this.found.length;
    [...this.list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === this.at)));
    this.input.setAttribute("aria-activedescendant", `place-${this.at}`);
    this.list.children[this.at].scrollIntoView({ block: "nearest" });
  }

  key(event) {
    if (event.key === "ArrowDown") this.select(this.at + 1);
    else if (event.key === "ArrowUp") this.select(this.at - 1);
    else if (event.key === "Enter" && this.found[this.at]) location.href = this.found[this.at].href;
    else return;
    event.preventDefault();
  }
}

const KEYS = [
  ["Ctrl K", "go to anything"], ["g o", "overview"], ["g d", "deployments"], ["g l", "operations"], ["g a", "audit log"],
  ["/", "search on this page"], ["j  k", "next and previous row"], ["Enter", "open the row"], ["?", "show these keys"], ["Esc", "close the dialog"],
];

function helpOnKeys() {
  const dialog = document.createElement("dialog");
  dialog.setAttribute("aria-label", "Keys");
  const box = document.createElement("div");
  box.className = "keys";
  const title = document.createElement("h2");
  title.textContent = "Keys";
  const list = document.createElement("dl");
  for (const [keys, what] of KEYS) {
    const term = document.createElement("dt");
    const key = document.createElement("kbd");
    key.textContent = keys;
    term.append(key);
    const text = document.createElement("dd");
    text.textContent = what;
    list.append(term, text);
  }
  box.append(title, list);
  dialog.append(box);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function listenToKeys(palette) {
  let before = "";
  const goes = { o: "", d: "/deployments", l: "/operations", a: "/audit" };
  let row = -1;
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); palette.open(); return; }
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...document.querySelectorAll("main tbody tr a:first-of-type")].filter((link, at, all) => all.findIndex((other) => other.closest("tr") === link.closest("tr")) === at);
    if (before === "g" && event.key in goes) { location.href = home + goes[event.key]; }
    else if (event.key === "/") { const field = document.querySelector("main input[type=search]"); if (field) { event.preventDefault(); field.focus(); } }
    else if (event.key === "?") helpOnKeys();
    else if ((event.key === "j" || event.key === "k") && rows.length) {
      row = Math.min(Math.max(row + (event.key === "j" ? 1 : -1), 0), rows.length - 1);
      rows[row].focus();
    }
    before = event.key;
  });
}

/** Buttons that copy what stands beside them. */
function copying() {
  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}

/** Filters apply as soon as they are chosen. */
function filtering() {
  document.addEventListener("change", ({ target }) => {
    if (target.matches("form.filters :is(select, input[type=checkbox])")) target.form.requestSubmit();
  });
}

const LEVELS = [["error", /ERROR|CRITICAL|Traceback|\[error/], ["warning", /WARN|\[warning/]];
const MOST_LINES = 2000;

/** A text of which the middle is left out if it is too long to show, as on the server. */
const withoutMiddle = (text) => (text.length > 4096 ? `${text.slice(0, 1024)} … the middle is left out … ${text.slice(-3072)}` : text);

/** A line of a log, as the server writes it. */
function logLine({ raw, source, timestamp }) {
  const exact = new Date(timestamp).toISOString();
  const item = document.createElement("li");
  item.className = LEVELS.find(([, words]) => words.test(raw))?.[0] ?? "";
  const parts = [["quiet", exact.slice(11, 19)], ["source", source], ["text", withoutMiddle(raw.replace(/^\[\d{4}-[^\]]{14,35}\] /, ""))]];
  item.append(...parts.map(([name, text]) => Object.assign(document.createElement("span"), { className: name, textContent: text })));
  item.firstChild.title = exact;
  return item;
}

/** Follows a log: new lines come in at the top, many at a time, and the oldest go. */
function followLines() {
  let followed = null;
  const isShown = ({ list }, line, text) => [...list.querySelectorAll(`[id^="l${line.timestamp}-"]`)].some((item) => item.lastElementChild.textContent === text);
  const show = (of) => {
    const lines = of.waiting.reverse().map((line) => [line, logLine(line)]);
    of.waiting = [];
    of.list.prepend(...lines.filter(([line, item]) => !isShown(of, line, item.lastElementChild.textContent)).map(([, item]) => item));
    while (of.list.children.length > MOST_LINES) of.list.lastElementChild.remove();
  };
  // Only what is written from now on is sent: what was written since the page was loaded is read with the page.
  const catchUp = async (of) => {
    const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    const text = response?.ok ? await response.text().catch(() => "") : "";
    if (of !== followed) return;
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("lines");
    if (fresh) of.list.replaceChildren(...fresh.children);
    of.list.hidden = false;
    document.querySelector("main > .empty")?.remove();
    of.button.textContent = "Stop following";
    of.isBehind = false;
    show(of);
  };
  const stop = () => {
    followed.source.close();
    followed.button.setAttribute("aria-pressed", "false");
    followed.button.textContent = "Follow";
    followed = null;
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-follow]");
    if (!button) return;
    if (followed) return stop();
    const of = { button, list: document.getElementById("lines"), source: new EventSource(button.dataset.follow), waiting: [], isBehind: true };
    followed = of;
    button.setAttribute("aria-pressed", "true");
    of.source.addEventListener("open", () => catchUp(of), { once: true });
    of.source.onerror = () => { if (of === followed && of.source.readyState === EventSource.CLOSED) stop(); };
    of.source.onmessage = (message) => {
      if (!of.waiting.length && !of.isBehind) requestAnimationFrame(() => show(of));
      if (of.waiting.push(JSON.parse(message.data)) > MOST_LINES) of.waiting.shift();
    };
  });
}

/** Part of a histogram's time is chosen by drawing over it. */
function brushing() {
  const brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  brush.setAttribute("class", "brush");
  let chart = null;
  let from = 0;
  let isDrawn = false;
  const place = (event) => {
    const box = chart.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  addEventListener("dragstart", (event) => { if (event.target instanceof Element && event.target.closest(".histogram")) event.preventDefault(); });
  addEventListener("pointerdown", (event) => {
    chart = event.button === 0 && event.target instanceof Element ? event.target.closest(".histogram") : null;
    isDrawn = false;
    if (chart) from = place(event);
  });
  addEventListener("pointermove", (event) => {
    if (!chart?.isConnected) return;
    const to = place(event);
    if (!isDrawn && Math.abs(to - from) < .01) return;
    isDrawn = true;
    for (const [name, value] of [["x", Math.min(from, to) * 480], ["width", Math.abs(to - from) * 480], ["y", 0], ["height", 48]]) brush.setAttribute(name, value);
    chart.append(brush);
  });
  addEventListener("pointerup", (event) => {
    if (!chart?.isConnected || !isDrawn) { chart = null; return; }
    const [begin, end] = [Number(chart.dataset.from), Number(chart.dataset.to)];
    const url = new URL(location.href);
    const times = [from, place(event)].sort((one, other) => one - other).map((part) => new Date(begin + part * (end - begin)).toISOString());
    url.searchParams.set("from", times[0]);
    url.searchParams.set("to", times[1]);
    url.hash = "";
    chart = null;
    location.href = url.href;
  });
  addEventListener("pointercancel", () => { chart = null; brush.remove(); });
  addEventListener("click", (event) => { if (isDrawn && event.target instanceof Element && event.target.closest(".histogram")) event.preventDefault(); }, true);
}

customElements.define("late-part", LatePart);
document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
const palette = new Palette();
document.querySelector("[data-palette]")?.addEventListener("click", () => palette.open());
listenToKeys(palette);
copying();
filtering();
followLines();
brushing();
follow();
setInterval(tick, 10_000);

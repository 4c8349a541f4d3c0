// The viewer: a table of episodes, which are inflated when they are opened or searched. No network, no library.
"use strict";

const $ = (id) => document.getElementById(id);
const index = JSON.parse($("index").textContent);
const columns = [{ name: "#", digits: 0 }, ...index.columns]; // [{name, filter, long, digits, empty}]; digits: of numbers
const visible = [...columns.keys()].filter((number) => !columns[number].empty);
const at = Object.fromEntries(columns.map((column, number) => [column.name, number]));
const rows = index.rows.map((values, id) => ({ id, values: [id, ...values] }));
const PAGE = 100; // rows shown at a time
const KEPT = 1e8; // letters of searched episodes that stay in memory

let shown = rows; // rows that pass the filters, in the order of the table
let page = 0;
let sorted = null; // {column, down}
let last = null; // id of the episode read last
let found = null; // ids of the episodes in which the searched words occur; null: no search
let searching = 0; // number of the newest search; older ones give up

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// --- episodes ---

async function inflated(id) {
  const letters = atob($("e" + id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let number = 0; number < letters.length; number++) bytes[number] = letters.charCodeAt(number); // from() is slow
  const stream = new DecompressionStream("deflate");
  const writer = stream.writable.getWriter();
  writer.write(bytes);
  writer.close();
  return (await new Response(stream.readable).text()).split("\0"); // markup, JSON
}

const texts = new Map(); // what was searched once stays in memory, up to KEPT letters
let kept = 0;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

async function textOf(id) {
  if (texts.has(id)) return texts.get(id);
  const markup = (await inflated(id))[0].replace(/<[^>]*>/g, "\n");
  const text = markup.replace(/&(amp|lt|gt|quot|#x27);/g, (_, name) => ENTITIES[name]).toLowerCase();
  if (kept < KEPT) texts.set(id, text);
  kept += text.length;
  return text;
}

// --- the table ---

function text(value) {
  return value === null ? "" : Array.isArray(value) ? value.join(", ") : String(value);
}

function cellOf(value, column) {
  if (column.long) return make("td", {}, make("span", { className: "long", textContent: text(value), title: text(value) }));
  if (column.digits === null) return make("td", { className: Array.isArray(value) ? "list" : "" }, text(value));
  return make("td", { className: "number" }, value === null ? "" : value.toFixed(column.digits));
}

function openRow(event) {
  const link = event.target.closest("tr")?.querySelector("a");
  if (link && !event.target.closest("a") && getSelection().isCollapsed) link.click();
}

function drawHead() {
  const cells = visible.map((number) => {
    const button = make("button", { type: "button", textContent: columns[number].name });
    button.addEventListener("click", () => {
      sorted = { column: number, down: sorted?.column === number && !sorted.down };
      refresh();
    });
    const kind = columns[number].digits === null || !number ? "" : "number";
    return make("th", { scope: "col", className: kind, title: "sort" }, button);
  });
  $("rows").tHead.rows[0].replaceChildren(...cells);
}

function drawRows() {
  const first = page * PAGE;
  const body = shown.slice(first, first + PAGE).map(({ id, values }) => {
    const mark = noteOf(id);
    const link = make("a", { href: addressOf(id, counterpart(id)), textContent: mark ? `${id} ✎` : String(id), title: mark });
    const [, ...cells] = visible.map((number) => cellOf(values[number], columns[number]));
    return make("tr", {}, make("td", {}, link), ...cells);
  });
  $("rows").tBodies[0].replaceChildren(...body);
  visible.forEach((number, place) => {
    const direction = sorted?.column === number ? (sorted.down ? "descending" : "ascending") : "none";
    $("rows").tHead.rows[0].cells[place].setAttribute("aria-sort", direction);
  });
  const correct = shown.filter(({ values }) => values[at.correct] === "yes").length;
  const scored = shown.filter(({ values }) => values[at.correct] !== "unscored").length;
  const share = scored ? `, ${((100 * correct) / scored).toFixed(1)}% of ${scored} scored correct` : "";
  $("count").textContent = `${shown.length} of ${rows.length} episodes${share}`;
  drawPager(first);
  $("notes").hidden = noted().length === 0;
}

function drawPager(first) {
  const turn = (name, to, works) => {
    const button = make("button", { type: "button", textContent: name, disabled: !works });
    button.addEventListener("click", () => { page = to; drawRows(); });
    return button;
  };
  const end = Math.min(first + PAGE, shown.length);
  const parts = shown.length <= PAGE ? [] : [
    turn("←", page - 1, page > 0), ` ${first + 1} to ${end} `, turn("→", page + 1, end < shown.length)];
  $("pager").replaceChildren(...parts);
}

function compare(a, b, down = false) {
  const [one, two] = [a, b].map((value) => text(value) === "");
  if (one || two) return one - two; // what is missing comes last, whatever the direction
  const order = typeof a === "number" && typeof b === "number" ? a - b : text(a).localeCompare(text(b));
  return down ? -order : order;
}

// By player, environment, level and task: episodes end in any order.
function byPlace(a, b) {
  for (const name of ["step", "player", "env", "d", "seed", "trial"]) {
    const order = compare(a.values[at[name]], b.values[at[name]]);
    if (order) return order;
  }
  return a.id - b.id;
}

function refresh() {
  const wanted = [...$("choices").querySelectorAll("select")].filter((select) => select.value !== "");
  const passes = ({ id, values }) => (found === null || found.has(id)) && wanted.every((select) => {
    const value = values[select.dataset.column];
    return Array.isArray(value) ? value.includes(select.value) : text(value) === select.value;
  });
  shown = rows.filter(passes);
  if (sorted) shown.sort((a, b) => compare(a.values[sorted.column], b.values[sorted.column], sorted.down));
  else shown.sort(byPlace);
  page = 0;
  drawRows();
}

function drawChoices() {
  columns.forEach((column, number) => {
    if (!column.filter) return;
    const counts = new Map();
    for (const { values } of rows) {
      for (const value of [values[number]].flat()) {
        if (value !== null && value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
      }
    }
    const [first] = counts.values();
    if (!counts.size || first === rows.length) return; // the same in all
    const options = [...counts.keys()].sort((a, b) => compare(a, b)).map((value) =>
      make("option", { value: text(value), textContent: `${text(value)} (${counts.get(value)})` }));
    const select = make("select", {}, make("option", { value: "", textContent: "all" }), ...options);
    select.dataset.column = String(number);
    select.addEventListener("change", refresh);
    $("choices").append(make("label", {}, column.name + " ", select));
  });
}

// --- searching ---

function wordsIn(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map((match) => match[1] ?? match[2]);
}

async function search() {
  const mine = ++searching;
  const words = wordsIn($("words").value);
  if (!words.length) {
    found = null;
    return refresh();
  }
  const hits = new Set();
  let rested = performance.now();
  for (const { id } of rows) {
    const where = texts.get(id) ?? (await textOf(id));
    if (words.every((word) => where.includes(word))) hits.add(id);
    if (performance.now() - rested > 100) {
      $("count").textContent = `searched ${id + 1} of ${rows.length} episodes: ${hits.size} found`;
      await new Promise((resume) => setTimeout(resume)); // so that the page stays awake
      rested = performance.now();
    }
    if (mine !== searching) return; // another search has begun
  }
  found = hits;
  refresh();
}

let waiting = 0;
function searchSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(search, 300);
}

function highlight() {
  const words = wordsIn($("words").value);
  if (!globalThis.CSS?.highlights || !words.length) return globalThis.CSS?.highlights?.clear();
  const ranges = [];
  const walker = document.createTreeWalker($("panes"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const where = node.data.toLowerCase();
    for (const word of words) {
      for (let start = where.indexOf(word); start >= 0; start = where.indexOf(word, start + word.length)) {
        ranges.push(new StaticRange({ startContainer: node, startOffset: start, endContainer: node, endOffset: start + word.length }));
        const folded = node.parentElement.closest("details");
        if (folded && !node.parentElement.closest("summary")) folded.open = true;
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

// --- reading ---

function keyOf({ values }, ...names) {
  return names.map((name) => text(values[at[name]])).join(" ");
}

function grouped(...names) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row, ...names);
    if (groups.has(key)) groups.get(key).push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

const byTask = grouped("env", "d", "axes", "seed");
const bySeed = grouped("env", "seed");

// The same task played by another player, the same trial if there is one; null if there is none.
function counterpart(id) {
  const others = byTask.get(keyOf(rows[id], "env", "d", "axes", "seed"))
    .filter((row) => keyOf(row, "player") !== keyOf(rows[id], "player"));
  return (others.find((row) => keyOf(row, "trial") === keyOf(rows[id], "trial")) ?? others[0])?.id ?? null;
}

// Episodes that belong beside one: of the same task (another player, trial or step), then of its seed at other levels.
function kindred(id) {
  const task = byTask.get(keyOf(rows[id], "env", "d", "axes", "seed"));
  const rest = bySeed.get(keyOf(rows[id], "env", "seed")).filter((row) => !task.includes(row));
  return [...task, ...rest].filter((row) => row.id !== id);
}

const OUTCOMES = { yes: "correct", no: "not correct", unscored: "unscored" };

function drawOther(id, beside) {
  const named = ({ id: other, values }) => {
    const told = ["player", "d", "axes", "trial", "step", "decoding", "group"].filter((name) =>
      text(values[at[name]]) !== "" && !(name === "trial" && values[at.trial] === 0));
    const facts = told.map((name) => `${name} ${text(values[at[name]])}`);
    return make("option", { value: String(other), selected: other === beside,
      textContent: `#${other} · ${[...facts, OUTCOMES[values[at.correct]]].join(" · ")}` });
  };
  const some = kindred(id).slice(0, 200);
  if (beside !== null && !some.some((row) => row.id === beside)) some.unshift(rows[beside]);
  $("other").replaceChildren(make("option", { value: "", textContent: some.length ? "nothing" : "no other of this task" }), ...some.map(named));
}

function opened() {
  const ids = decodeURIComponent(location.hash.slice(1)).split("+").filter(Boolean).map(Number);
  return ids.filter((id) => rows[id] !== undefined).slice(0, 2);
}

async function show() {
  const ids = opened();
  $("list").hidden = ids.length > 0;
  $("reading").hidden = ids.length === 0;
  if (!ids.length) {
    const number = shown.findIndex((row) => row.id === last);
    if (number >= 0) {
      page = Math.floor(number / PAGE);
      drawRows();
      $("rows").tBodies[0].rows[number % PAGE].querySelector("a").focus();
    }
    return;
  }
  last = ids[0];
  const place = shown.findIndex((row) => row.id === ids[0]);
  $("place").textContent = place < 0 ? "" : `${place + 1} of ${shown.length}`;
  $("previous").disabled = place <= 0;
  $("next").disabled = place < 0 || place + 1 >= shown.length;
  drawOther(ids[0], ids[1] ?? null);
  const panes = [];
  for (const id of ids) {
    const pane = make("section", {}); // the markup was escaped where it was made; the page's policy runs no script in it
    const [markup, json] = await inflated(id);
    if (raw) pane.append(make("pre", { textContent: JSON.stringify(JSON.parse(json), null, 1) }));
    else pane.innerHTML = markup;
    panes.push(pane);
  }
  if (opened().join() !== ids.join()) return; // another one was opened meanwhile
  $("panes").replaceChildren(...panes);
  fold();
  highlight();
  scrollTo(0, 0);
  $("note").value = noteOf(ids[0]);
  const heading = panes[0].querySelector("h2, pre");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}

// --- notes, in this browser ---

let raw = false; // JSON in place of the conversation

function keyOfNote(id) {
  return "ecomlab note " + keyOf(rows[id], "player", "env", "d", "axes", "seed", "trial", "step");
}

function noteOf(id) {
  try { return localStorage.getItem(keyOfNote(id)) ?? ""; } catch { return ""; } // a browser may forbid it to a file
}

function keepNote() {
  const key = keyOfNote(opened()[0]);
  try {
    if ($("note").value.trim()) localStorage.setItem(key, $("note").value);
    else localStorage.removeItem(key);
  } catch { $("note").placeholder = "this browser keeps no notes for files"; }
}

function noted() {
  return rows.filter(({ id }) => noteOf(id));
}

async function copyText(text, button) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1500);
}

function copyNotes() {
  const found = noted().map(({ id, values }) => ({
    ...Object.fromEntries(["player", "env", "d", "seed", "trial"].map((name) => [name, values[at[name]]])), note: noteOf(id) }));
  copyText(JSON.stringify(found, null, 1), $("notes"));
}

// A cell of an overview filters the table by its player, environment and level.
function filterBy(event) {
  const button = event.target.closest(".matrix button");
  if (!button) return;
  for (const select of $("choices").querySelectorAll("select")) {
    const { name } = columns[select.dataset.column];
    if (["player", "env", "d"].includes(name)) select.value = button.dataset[name] ?? "";
  }
  refresh();
  $("count").scrollIntoView({ block: "center" });
}

function fold() {
  const open = $("unfold").getAttribute("aria-pressed") === "true";
  for (const details of $("panes").querySelectorAll("details.call")) details.open = open;
}

function turnFold() {
  $("unfold").setAttribute("aria-pressed", String($("unfold").getAttribute("aria-pressed") !== "true"));
  fold();
}

function addressOf(...ids) {
  return "#" + ids.filter((id) => id !== null && id !== "").join("+");
}

function go(by) {
  const row = shown[shown.findIndex(({ id }) => id === opened()[0]) + by];
  if (row) location.hash = addressOf(row.id, counterpart(row.id));
}

function move(by) {
  const links = [...$("rows").tBodies[0].querySelectorAll("a")];
  const now = links.indexOf(document.activeElement);
  links[now < 0 ? 0 : Math.min(links.length - 1, Math.max(0, now + by))]?.focus();
}

function besideLast() {
  const link = document.activeElement.closest("#rows a");
  if (link && last !== null) location.hash = addressOf(last, parseInt(link.textContent, 10));
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, select, textarea");
  const reading = !$("reading").hidden;
  if (event.key === "Escape") {
    if (typing) typing.blur();
    else if (reading) location.hash = "#";
    return;
  }
  if (typing) return;
  const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  const acts = reading
    ? { j: () => go(1), k: () => go(-1), e: turnFold, b: () => $("other").focus() }
    : { "/": () => $("words").focus(), b: besideLast, ...(by ? { [event.key]: () => move(by) } : {}) };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
}

// --- beginning ---

drawHead();
drawChoices();
refresh();
$("words").addEventListener("input", searchSoon);
$("filters").addEventListener("submit", (event) => { event.preventDefault(); search(); });
$("filters").addEventListener("reset", () => setTimeout(() => { sorted = null; search(); }));
$("rows").tBodies[0].addEventListener("click", openRow);
$("previous").addEventListener("click", () => go(-1));
$("next").addEventListener("click", () => go(1));
$("unfold").addEventListener("click", turnFold);
$("raw").addEventListener("click", () => {
  raw = !raw;
  $("raw").setAttribute("aria-pressed", String(raw));
  show();
});
$("copy").addEventListener("click", async () => copyText((await inflated(opened()[0]))[1], $("copy")));
$("note").addEventListener("input", keepNote);
$("notes").addEventListener("click", copyNotes);
document.addEventListener("click", filterBy);
if (index.live) setInterval(() => { if (!$("list").hidden && !$("words").value) location.reload(); }, 10000);
$("other").addEventListener("change", () => {
  location.hash = addressOf(opened()[0], $("other").value);
});
$("theme").addEventListener("click", () => {
  const style = document.documentElement.style;
  const dark = (style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  style.colorScheme = dark ? "light" : "dark";
});
addEventListener("keydown", press);
addEventListener("hashchange", show);
addEventListener("DOMContentLoaded", () => { // by now every episode has been read in
  if (!("DecompressionStream" in globalThis)) {
    $("count").textContent = "This browser cannot inflate episodes; open the page in one of 2023 or later.";
  } else if (location.hash.length > 1) show();
});

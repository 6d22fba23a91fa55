// View 4: a data set, before and after.
import * as L from "leaflet";
import { type Answer, type Uploaded, download, post, postBinary, upload } from "../shell/api";
import { bars } from "../shell/chart";
import { choice, colour, dropZone, empty, facts, field, fill, h, section, segments } from "../shell/dom";
import { type Watching, resumeJob, watchJob } from "../shell/job";
import { PointsLayer } from "../shell/map";
import { rough } from "../shell/rough";
import type { Explanation, Mounted, Shell, View } from "../shell/view";
import * as words from "../shell/words";

interface Look { name: string; bytes: number; columns: string[]; geometry: string; suffix: string; guess: { lon: string; lat: string; subject: string } }
interface Histogram { edges: number[]; before: number[]; after: number[]; median_before: number; median_after: number }
interface Result {
  rows: number; sentence: string; scope: string; exposure: string; suffix: string; shown: number; moved_m: number; crowd_m: number; subjects: number;
  guarantee: { metric: string; basis: string }; steps: Histogram | null; crowds: Histogram | null;
}
interface Step { rows: number; of: number | null }

let file: { id: string; look: Look } | null = null;
const OUTPUTS = [".csv", ".parquet", ".geojson", ".gpkg", ".jsonl"];

function mount(shell: Shell, given: Record<string, string>): Mounted {
  let lon = "", lat = "", subject = "", built = given["built"] ?? "", output = "", show = "after", job = given["job"] ?? "";
  let keep = new Set<string>();
  let result: Answer<Result> | null = null;
  let gone = false, watching: Watching | null = null;
  const points = new PointsLayer([colour("--pin"), colour("--cloud")], 4, 0.55);
  points.addTo(shell.map.layers);

  const columnsBox = h("div", {}), jobBox = h("div", { "data-test": "build" }), outcome = h("div", { "data-test": "outcome" });
  const level = rough(given, { apart: 200, factor: 4 }, (settled) => { if (settled) shell.changed(); });
  const releaseButton = h("button", { type: "button", class: "main-button", disabled: true, "data-test": "release", onclick: () => void release() }, "Blur and compare");
  const showButtons = segments("Drawn on the map", [["before", "Before"], ["after", "After"], ["both", "Both"]], show, (value) => { show = value; draw(); });
  const mechanism = choice([["", "Laplace noise on the globe"]], built, (value) => { built = value; fill(levelBox, ...(built ? [h("p", { class: "note" }, "The map's own levels are kept.")] : level.elements)); shell.changed(); });
  const levelBox = h("div", {}, ...level.elements);

  fill(shell.panel,
    showButtons,
    section("The file",
      dropZone("Drop CSV, Parquet, GeoJSON or GPX here, or choose a file", ".csv,.parquet,.geoparquet,.geojson,.gpx,.gpkg,.fgb,.jsonl,.ndjson", (chosen) => void own(upload(chosen))),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "plain", "data-test": "example", onclick: () => void own(post<Uploaded>("/api/data/example")) }, "Try an example: 400 made-up commuters")),
      columnsBox),
    section("How rough", field("Mechanism", mechanism), levelBox),
    section("The release", h("div", { class: "buttons" }, releaseButton), jobBox, outcome));
  shell.map.map.setView([39.9526, -75.1635], 11, { animate: false });

  async function own(sent: Promise<Uploaded>): Promise<void> {
    try {
      const made = await sent;
      const look = await post<Look>("/api/data/look", { upload: made.id });
      if (file && file.id !== made.id) void post("/api/uploads/forget", { id: file.id }).catch(() => undefined);
      if (gone) return;
      file = { id: made.id, look };
      job = "";
      result = null;
      shell.fail(null);
      showFile();
      draw();
      shell.changed();
      shell.announce(`${look.name}: ${look.columns.length} columns`);
    } catch (error) { if (!gone) shell.fail(error as Error); }
  }
  function showFile(): void {
    releaseButton.disabled = file === null;
    fill(jobBox);
    fill(outcome, empty(file ? "Choose columns and roughness, then blur." : "Nothing here yet: drop a file above, or try the example. It stays on this machine."));
    if (!file) { fill(columnsBox); return; }
    const { look } = file;
    ({ lon, lat, subject } = look.guess);
    keep = new Set();
    output = look.suffix;
    const names = (none: string): [string, string][] => [["", none], ...look.columns.map((name): [string, string] => [name, name])];
    const located: Node[] = look.geometry && !(lon && lat)
      ? [h("p", { class: "note" }, `Places: the points of ${look.geometry}.`)]
      : [h("div", { class: "row" }, field("Longitude", choice(names("choose"), lon, (v) => { lon = v; })), field("Latitude", choice(names("choose"), lat, (v) => { lat = v; })))];
    fill(columnsBox, facts([look.name, words.bytes(look.bytes)]), ...located,
      field("Who (for exposure; is not released unless kept)", choice(names("rows are of nobody in particular"), subject, (v) => { subject = v; })),
      h("fieldset", {}, h("legend", {}, "Also release, as they are"), ...look.columns.filter((name) => name !== lon && name !== lat).map((name) => {
        const box = h("input", { type: "checkbox", onchange: () => { if (box.checked) keep.add(name); else keep.delete(name); } });
        return h("label", { class: "check" }, box, name);
      })),
      field("Write as", choice([...new Set([look.suffix, ...OUTPUTS])].map((s) => [s, s]), output, (v) => { output = v; })));
  }
  async function release(): Promise<void> {
    if (!file) return;
    releaseButton.disabled = true;
    shell.fail(null);
    fill(outcome);
    const places = file.look.geometry && !(lon && lat) ? {} : { lon, lat };
    try {
      const started = await post<{ id: string }>("/api/data/release", {
        upload: file.id, ...(built ? { built } : { per_m: level.epsilon() }), ...places, keep: [...keep], subject, output,
      });
      job = started.id;
      watch();
      shell.changed();
    } catch (error) { releaseButton.disabled = false; showOutcome(); shell.fail(error as Error); }
  }
  function watch(): void {
    watching = watchJob<Step>(shell, jobBox, job, (steps) => {
      const last = steps[steps.length - 1];
      return [h("p", { class: "note" }, last ? `${words.count(last.rows)} rows blurred` : "Reading the file…")];
    }, () => void load(), () => { releaseButton.disabled = file === null; });
  }
  async function load(): Promise<void> {
    try {
      result = await postBinary<Result>("/api/data/result", { job });
      if (gone) return;
      fill(jobBox);
      const before = result.arrays["before"]!;
      let [west, south, east, north] = [180, 90, -180, -90];
      for (let i = 0; i + 1 < before.length; i += 2) {
        west = Math.min(west, before[i]!); east = Math.max(east, before[i]!);
        south = Math.min(south, before[i + 1]!); north = Math.max(north, before[i + 1]!);
      }
      shell.map.map.fitBounds(L.latLngBounds([south, west], [north, east]), { animate: false, padding: [20, 20], maxZoom: 15 });
      showOutcome();
      draw();
      shell.announce(`${words.count(result.head.rows)} rows released; moved ${words.length(result.head.moved_m)} on average`);
    } catch (error) { if (!gone) { job = ""; showFile(); shell.fail(error as Error); } }
  }
  function showOutcome(): void {
    if (!result) { fill(outcome, empty("Nothing released.")); return; }
    const told = result.head;
    const chart = (name: string, one: Histogram | null, unit: string, say: (v: number) => string): Node | null => one && h("div", {},
      h("h3", {}, name), bars(`${name}: before and after`, one.edges, one.before, one.after, unit, say),
      h("p", { class: "note" }, `Median ${say(one.median_before)} before, ${say(one.median_after)} after.`));
    fill(outcome,
      h("p", { class: "big" }, `${words.count(told.rows)} rows, moved ${words.length(told.moved_m)} on average`),
      h("p", {}, told.sentence),
      facts(["each report keeps", told.guarantee.metric], ["basis", told.guarantee.basis], told.subjects ? ["people", words.count(told.subjects)] : null),
      h("p", { class: "note", "data-test": "exposure" }, `Exposure: ${told.exposure}.`),
      h("p", { class: "note" }, told.scope ? `This holds for ${told.scope}.` : ""),
      h("p", { class: "note" }, h("span", { class: "key a" }), "before ", h("span", { class: "key b" }), "after"),
      chart("From one place to the next", told.steps, "", words.length),
      chart(`Rows in the same ${words.length(told.crowd_m)} cell`, told.crowds, "rows", (v) => words.count(Math.round(v))),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "main-button", "data-test": "save", onclick: () => void save("file", `released${told.suffix}`) }, `Download released${told.suffix}`),
        h("button", { type: "button", class: "plain", "data-test": "save-guarantee", onclick: () => void save("guarantee", "guarantee.json") }, "Download guarantee.json")));
  }
  async function save(kind: string, name: string): Promise<void> {
    try { await download(`/api/data/${kind}`, { job }, name); } catch (error) { shell.fail(error as Error); }
  }
  function draw(): void {
    if (!result) { points.set([]); shell.legend(h("p", {}, "Before and after are drawn here.")); return; }
    const before = result.arrays["before"]!, after = result.arrays["after"]!;
    const parts = show === "both" ? [before, after] : [show === "before" ? before : after];
    const all = new Float64Array(parts.reduce((n, part) => n + part.length, 0)), kinds = new Uint8Array(all.length / 2);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      kinds.fill(part === after ? 1 : 0, at / 2, (at + part.length) / 2);
      at += part.length;
    }
    points.set(all, kinds);
    shell.legend(h("p", { class: "title" }, `${words.count(result.head.shown)} of ${words.count(result.head.rows)} rows`),
      show === "after" ? "" : h("p", {}, h("span", { class: "key truth" }), "before: true places"),
      show === "before" ? "" : h("p", {}, h("span", { class: "key cloud" }), "after: reports"));
  }

  void post<{ id: string; kind: string; title: string }[]>("/api/shelf").then((all) => {
    for (const one of all.filter((each) => each.kind === "map")) mechanism.append(h("option", { value: one.id, selected: one.id === built }, one.title));
    if (built && !all.some((one) => one.id === built)) { built = ""; mechanism.value = ""; }
    if (built) mechanism.dispatchEvent(new Event("change"));
  }, shell.fail);
  showFile();
  draw();
  if (job) resumeJob(job, { running: watch, done: () => void load(), gone: () => { job = ""; shell.changed(); } });

  const quoted = (names: string[]): string => names.map((name) => JSON.stringify(name)).join(", ");
  return {
    settings: () => ({ ...level.settings(), ...(built ? { built } : {}), ...(job ? { job } : {}) }),
    explain,
    python: () => `import whereish as wh\n\nreleased = wh.sanitize(\n    "input${file?.look.suffix ?? ".csv"}", "released${output || ".csv"}",\n${lon && lat ? `    lon=${JSON.stringify(lon)}, lat=${JSON.stringify(lat)},\n` : ""}    ${built ? 'mechanism="map.npz"' : `epsilon="${level.expression()}"`},\n    keep=[${quoted([...keep])}],\n)\nprint(released)\n`,
    command: () => `whereish sanitize input${file?.look.suffix ?? ".csv"} -o released${output || ".csv"}${lon && lat ? ` --lon ${JSON.stringify(lon)} --lat ${JSON.stringify(lat)}` : ""} ${built ? "--mechanism map.npz" : `--epsilon "${level.expression()}"`}${[...keep].map((name) => ` --keep ${JSON.stringify(name)}`).join("")}\n`,
    repaint: draw,
    leave: () => { gone = true; watching?.stop(); },
  };

  function explain(): Explanation[] {
    return [{
      title: "One report for each row", formula: "P(report ∈ S | x) ≤ e^(ε·d(x,x′)) · P(report ∈ S | x′)",
      text: "Every row's place is replaced by one report. Only the columns that you tick are released; metadata of the file never is.",
      source: "Andrés et al. (CCS 2013); whereish, publish/sanitize.py; docs/publishing.md.",
    }, {
      title: "Exposure", formula: "k reports of one person keep k · ε",
      text: "The promise is per row. Whoever is in many rows is protected less: the exposure is that of the person with most rows, or of all rows where nobody is named.",
      source: "Sequential composition; Dwork, Roth (2014), Theorem 3.16, for metrics.",
    }];
  }
}

export const data: View = { id: "data", title: "Data set", words: "Blur a file, see what changes, and keep it with its guarantee.", mount };

// View 3: the optimal mechanism on sites with a prior, with bounds that close in.
import * as L from "leaflet";
import { type Answer, Latest, download, post, postBinary, upload } from "../shell/api";
import { lines } from "../shell/chart";
import { choice, colour, dropZone, empty, facts, field, fill, h, section, segments } from "../shell/dom";
import { type Watching, resumeJob, watchJob } from "../shell/job";
import { HEAT } from "../shell/map";
import { rough } from "../shell/rough";
import type { Explanation, Mounted, Shell, View } from "../shell/view";
import * as words from "../shell/words";

interface Sites { count: number }
interface Rival { name: string; loss: number; adversary_m: number; identified: number }
interface Solved {
  sites: number; reports: number; loss: number; lower: number; gap: number; status: string; kind: "euclidean" | "squared"; table: Rival[];
  metric: string; basis: string; source: string; identified_before: number;
}
interface Row { site: number; report: number; chance: number }
interface Step { upper: number; lower: number; seconds: number }

const CENTRE = { lon: -75.1635, lat: 39.9526 };
let drawn: { lon: number; lat: number }[] = [];
let file: { id: string; name: string } | null = null;
let centre = CENTRE;

function mount(shell: Shell, given: Record<string, string>): Mounted {
  let source = ["grid", "drawn", "upload"].includes(given["source"] ?? "") ? given["source"]! : "grid";
  let side = Math.min(15, Math.max(2, Math.round(Number(given["side"]) || 7))), cell = Number(given["cell"]) > 0 ? Number(given["cell"]) : 1000;
  let prior = given["prior"] === "even" ? "even" : "people", loss = given["loss"] === "squared" ? "squared" : "euclidean";
  let seconds = 60, job = given["job"] ?? "", show = "prior";
  let sites: Answer<Sites> | null = null, solved: Answer<Solved> | null = null, row: Answer<Row> | null = null;
  let gone = false, watching: Watching | null = null;

  const shapes = L.layerGroup().addTo(shell.map.layers), marks = L.layerGroup().addTo(shell.map.layers);
  const level = rough(given, { apart: 1000, factor: 3 }, (settled) => { if (settled) forget(); });
  const sourceBox = h("div", {}), jobBox = h("div", { "data-test": "build" }), outcome = h("div", { "data-test": "outcome" }), rowBox = h("div", { "data-test": "at" });
  const solveButton = h("button", { type: "button", class: "main-button", "data-test": "solve", onclick: () => void solve() }, "Solve");
  const showButtons = segments("Drawn on the map", [["prior", "Prior"], ["reports", "Reports"], ["errors", "Error"], ["row", "One site"]], show, (value) => { show = value; draw(); });
  const sourceButtons = segments("Sites", [["grid", "Grid"], ["drawn", "Draw"], ["upload", "File"]], source, (value) => { source = value; showSource(); ask(); });

  fill(shell.panel, showButtons,
    section("Sites and prior", sourceButtons, sourceBox,
      field("Who is where", choice([["people", "as many as people live there (US)"], ["even", "all sites alike"]], prior, (value) => { prior = value; ask(); }))),
    section("The promise", ...level.elements,
      field("Loss", choice([["euclidean", "distance"], ["squared", "squared distance"]], loss, (value) => { loss = value; forget(); })),
      field("At most", choice([["20", "20 seconds"], ["60", "one minute"], ["300", "five minutes"]], String(seconds), (value) => { seconds = Number(value); }))),
    section("The optimum", h("div", { class: "buttons" }, solveButton), jobBox, outcome),
    section("One site", rowBox));

  const asking = new Latest(
    (asked: unknown) => postBinary<Sites>("/api/optimal/sites", asked),
    (answer) => {
      if (gone) return;
      sites = answer;
      shell.fail(null);
      solveButton.disabled = false;
      fit();
      draw();
      shell.announce(`${answer.head.count} sites`);
    },
    (error) => { if (!gone) { sites = null; solveButton.disabled = true; draw(); shell.fail(error); } });

  function problem(): Record<string, unknown> {
    return { source, centre, side, cell_m: cell, drawn, upload: file?.id ?? "", prior };
  }
  function forget(): void {
    job = "";
    solved = null;
    row = null;
    watching?.stop();
    fill(jobBox);
    fill(outcome, empty("Not solved yet. While it is, a channel's loss comes down and a proven bound goes up."));
    fill(rowBox, empty("Solve first, then click a site to see its reports and what they tell."));
    show = "prior";
    showButtons.select(show);
    draw();
    shell.changed();
  }
  function ask(): void {
    forget();
    if (source === "drawn" && drawn.length < 2) { sites = null; solveButton.disabled = true; draw(); return; }
    if (source === "upload" && !file) { sites = null; solveButton.disabled = true; draw(); return; }
    asking.ask(problem());
  }
  function showSource(): void {
    const sideInput = h("input", { type: "number", min: 2, max: 15, value: side, onchange: () => { side = Math.min(15, Math.max(2, Math.round(Number(sideInput.value) || 7))); ask(); } });
    const cellInput = h("input", { type: "number", min: 10, max: 100000, step: "any", value: cell, onchange: () => { cell = Number(cellInput.value) || cell; ask(); } });
    const grid: Node[] = [h("div", { class: "row" }, field("Cells to a side", sideInput), field("Cell (m)", cellInput)),
      h("div", { class: "buttons" }, h("button", { type: "button", class: "plain", onclick: () => { const c = shell.map.map.getCenter().wrap(); centre = { lon: c.lng, lat: c.lat }; ask(); } }, "Put the grid at the map's centre"))];
    if (source === "grid") fill(sourceBox, ...grid);
    else if (source === "drawn") {
      fill(sourceBox, h("p", { class: "note" }, drawn.length ? `${drawn.length} sites. Click the map to add more.` : "Click the map to put sites: at least two."),
        h("div", { class: "buttons" },
          h("button", { type: "button", class: "plain", "data-test": "add-site", onclick: () => { const c = shell.map.map.getCenter().wrap(); addSite(c.lng, c.lat); } }, "Add at the map's centre"),
          h("button", { type: "button", class: "plain", disabled: drawn.length === 0, onclick: () => { drawn = drawn.slice(0, -1); showSource(); ask(); } }, "Remove the last")));
    } else {
      fill(sourceBox, dropZone(file ? `${file.name}: choose another` : "Drop sites or check-ins (CSV with lon, lat; GeoJSON), or choose a file", ".csv,.geojson,.parquet,.jsonl", (chosen) => void own(chosen)),
        h("p", { class: "note" }, "Up to 225 different places are sites, weighted by how often they come; more are check-ins, counted on the grid below."), ...grid);
    }
  }
  function addSite(lon: number, lat: number): void {
    drawn = [...drawn, { lon: Number(lon.toFixed(6)), lat: Number(lat.toFixed(6)) }];
    showSource();
    ask();
  }
  async function own(chosen: File): Promise<void> {
    try { file = await upload(chosen); showSource(); ask(); } catch (error) { shell.fail(error as Error); }
  }
  async function solve(): Promise<void> {
    solveButton.disabled = true;
    shell.fail(null);
    fill(outcome);
    try {
      const started = await post<{ id: string }>("/api/optimal/solve", { sites: problem(), per_m: level.epsilon(), loss, seconds });
      job = started.id;
      watch();
      shell.changed();
    } catch (error) { solveButton.disabled = false; shell.fail(error as Error); }
  }
  const say = (value: number): string => loss === "squared" ? `${(value / 1e6).toPrecision(3)} km²` : words.length(value);
  let history: Step[] = [];
  function boundsChart(): Node[] {
    const told = history.filter((step) => Number.isFinite(step.upper));
    if (told.length < 2) return [];
    const last = told[told.length - 1]!;
    return [lines(`Loss at hand ${say(last.upper)}, proven bound ${say(last.lower)}`, told.map((s) => s.seconds), told.map((s) => s.upper), told.map((s) => s.lower), `${last.seconds.toFixed(1)} s`, say),
      h("p", { class: "note" }, h("span", { class: "key b" }), "loss at hand ", h("span", { class: "key warned" }), "no channel can be below")];
  }
  function watch(): void {
    watching = watchJob<Step>(shell, jobBox, job, (steps) => {
      history = steps;
      const last = steps[steps.length - 1];
      return [h("p", { class: "note", "data-test": "bounds" }, last ? `Loss ${say(last.upper)}, at least ${say(last.lower)}: gap ${words.percent(Math.max(0, (last.upper - last.lower) / last.upper))}` : "Setting up…"), ...boundsChart()];
    }, () => void load(), () => { solveButton.disabled = false; });
  }
  async function load(): Promise<void> {
    try {
      const answer = await postBinary<Solved>("/api/optimal/result", { job });
      if (gone) return;
      solved = answer;
      if (!sites) { fit(); }
    } catch (error) { if (!gone) { ask(); shell.fail(error as Error); } return; }
    const told = solved.head;
    fill(jobBox);
    const bestLoss = told.loss;
    fill(outcome, facts(
      ["loss", say(told.loss)], ["no channel is below", say(told.lower)], ["certified gap", words.percent(Math.max(0, told.gap))],
      ["status", told.status], ["reports used", `${told.reports} of ${told.sites} sites`], ["guarantee", told.basis]),
    h("p", { class: "note" }, `Keeps ${told.metric}: ${told.source}.`), ...boundsChart(),
    h("h3", {}, "Against other mechanisms of the same promise"),
    h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Comparison of mechanisms" }, h("table", {}, h("thead", {}, h("tr", {}, ...["", "loss", "more", "his error", "named"].map((name) => h("th", {}, name)))),
      h("tbody", {}, ...told.table.map((one, i) => h("tr", { class: i === 0 ? "ours" : "" }, h("td", {}, one.name), h("td", {}, say(one.loss)),
        h("td", {}, i === 0 ? "" : `+${words.percent(one.loss / bestLoss - 1)}`), h("td", {}, words.length(one.adversary_m)), h("td", {}, words.percent(one.identified))))))),
    h("p", { class: "note" }, `His error: that of the adversary's best guess. Named: how often his likeliest site is the right one (${words.percent(told.identified_before)} without any report).`),
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "plain", "data-test": "npz", onclick: () => void save() }, "Download .npz"),
      h("button", { type: "button", class: "plain", onclick: () => shell.go("place", { mechanism: job }) }, "Use it on one place"),
      h("button", { type: "button", class: "plain", onclick: () => shell.go("audit", { built: job }) }, "Audit it")));
    if (!row) fill(rowBox, empty("Click a site on the map to see its reports and what they tell."));
    show = "reports";
    showButtons.select(show);
    draw();
    shell.announce(`Solved: loss ${say(told.loss)}, gap ${words.percent(told.gap)}`);
  }
  async function save(): Promise<void> {
    try { await download("/api/optimal/file", { job }, "channel.npz"); } catch (error) { shell.fail(error as Error); }
  }
  async function ask1(site: number): Promise<void> {
    try {
      row = await postBinary<Row>("/api/optimal/at", { job, site });
      if (gone || !solved) return;
      show = "row";
      showButtons.select(show);
      const report = solved.arrays["reports"]!, guess = solved.arrays["guesses"]!;
      const k = row.head.report;
      const at = L.latLng(report[2 * k + 1]!, report[2 * k]!), his = L.latLng(guess[2 * k + 1]!, guess[2 * k]!);
      const place = solved.arrays["sites"]!;
      const here = L.latLng(place[2 * site + 1]!, place[2 * site]!);
      fill(rowBox, facts(["likeliest report", `${words.percent(row.head.chance)} of the time`], ["that far from the site", words.length(here.distanceTo(at))],
        ["the adversary then guesses", his.distanceTo(here) < 1 ? "this site" : `a site ${words.length(his.distanceTo(here))} away`],
        ["expected loss here", say(solved.arrays["errors"]![site]!)]));
      draw();
    } catch (error) { if (!gone) shell.fail(error as Error); }
  }
  function fit(): void {
    const xy = (solved ?? sites)?.arrays["sites"];
    if (!xy?.length) return;
    const all = L.latLngBounds([]);
    for (let i = 0; i + 1 < xy.length; i += 2) all.extend([xy[i + 1]!, xy[i]!]);
    shell.map.map.fitBounds(all.pad(0.25), { animate: false });
  }
  function disks(xy: ArrayLike<number>, sizes: ArrayLike<number>, fillColour: string, name: string, click?: (index: number) => void, filled = true): void {
    let most = 0;
    for (let i = 0; i < sizes.length; i++) most = Math.max(most, sizes[i]!);
    for (let i = 0; i < sizes.length; i++) {
      const one = L.circleMarker([xy[2 * i + 1]!, xy[2 * i]!], {
        radius: Math.max(1.5, 18 * Math.sqrt(sizes[i]! / (most || 1))), color: fillColour, weight: 1.5, fillColor: fillColour, fillOpacity: filled ? 0.4 : 0, interactive: Boolean(click), className: name,
      }).addTo(shapes);
      if (click) one.on("click", (event) => { L.DomEvent.stopPropagation(event); click(i); });
    }
    shapesDrawn = sizes.length;
    shell.map.element.dataset["shapes"] = String(shapesDrawn);
  }
  let shapesDrawn = 0;
  function dots(xy: ArrayLike<number>, click?: (index: number) => void): void {
    for (let i = 0; 2 * i < xy.length; i++) {
      const one = L.circleMarker([xy[2 * i + 1]!, xy[2 * i]!], { radius: 3, color: colour("--soft"), weight: 1, fillOpacity: 0.6, interactive: Boolean(click) }).addTo(shapes);
      if (click) one.on("click", (event) => { L.DomEvent.stopPropagation(event); click(i); });
    }
  }
  function draw(): void {
    shapes.clearLayers();
    marks.clearLayers();
    shell.map.element.dataset["shapes"] = "0";
    const shown = solved ?? sites;
    if (!shown) {
      for (const one of drawn) if (source === "drawn") L.circleMarker([one.lat, one.lon], { radius: 5, color: colour("--accent") }).addTo(shapes);
      shell.legend(h("p", {}, source === "upload" ? "Choose a file to see its sites." : "Click the map to put sites."));
      return;
    }
    const xy = shown.arrays["sites"]!, click = solved ? (i: number) => void ask1(i) : undefined;
    const heat = `rgb(${HEAT[2]!.join(",")})`;
    if (!solved || show === "prior") {
      disks(xy, shown.arrays["prior"]!, colour("--accent"), "site", click);
      let most = 0;
      for (const p of shown.arrays["prior"]!) most = Math.max(most, p);
      shell.legend(h("p", { class: "title" }, "Prior"), h("p", {}, h("span", { class: "key cloud" }), `area of a disk: its probability, at most ${words.percent(most)}`));
    } else if (show === "reports") {
      dots(xy, click);
      disks(solved.arrays["reports"]!, solved.arrays["chances"]!, colour("--accent"), "report");
      shell.legend(h("p", { class: "title" }, "How often each report comes"), h("p", {}, h("span", { class: "key cloud" }), "area of a disk: its probability"),
        h("p", {}, h("span", { class: "key other" }), "sites; click one"));
    } else if (show === "errors") {
      disks(xy, solved.arrays["errors"]!, heat, "site", click);
      let most = 0;
      for (const e of solved.arrays["errors"]!) most = Math.max(most, e);
      shell.legend(h("p", { class: "title" }, "Expected loss of someone at each site"), h("p", {}, `largest disk: ${say(most)}`));
    } else if (row) {
      dots(xy, click);
      disks(solved.arrays["reports"]!, row.arrays["row"]!, colour("--accent"), "report");
      disks(xy, row.arrays["posterior"]!, heat, "believed", undefined, false);
      const s = row.head.site, k = row.head.report, g = solved.arrays["guesses"]!, r = solved.arrays["reports"]!;
      L.circleMarker([xy[2 * s + 1]!, xy[2 * s]!], { radius: 7, color: colour("--card"), weight: 2, fillColor: colour("--pin"), fillOpacity: 1 }).addTo(marks);
      L.polyline([[r[2 * k + 1]!, r[2 * k]!], [g[2 * k + 1]!, g[2 * k]!]], { color: heat, weight: 2, dashArray: "4 4" }).addTo(marks);
      shell.legend(h("p", { class: "title" }, "One site"), h("p", {}, h("span", { class: "key truth" }), "the site"),
        h("p", {}, h("span", { class: "key cloud" }), "its reports"), h("p", {}, h("span", { class: "key believed-ring" }), "what the adversary believes after the likeliest one"));
    } else shell.legend(h("p", {}, "Click a site on the map."));
  }
  shell.map.map.on("click", (event: L.LeafletMouseEvent) => {
    const to = event.latlng.wrap();
    if (source === "drawn" && !solved) { addSite(to.lng, to.lat); return; }
    if (!solved) return;
    const xy = solved.arrays["sites"]!;
    let best = 0, least = Infinity;
    for (let i = 0; i * 2 < xy.length; i++) {
      const away = to.distanceTo([xy[2 * i + 1]!, xy[2 * i]!]);
      if (away < least) { least = away; best = i; }
    }
    void ask1(best);
  });

  showSource();
  fill(outcome, empty("Not solved yet. While it is, a channel's loss comes down and a proven bound goes up."));
  fill(rowBox, empty("Solve first, then click a site to see its reports and what they tell."));
  if (job) {
    resumeJob(job, {
      running: () => { solveButton.disabled = true; asking.ask(problem()); watch(); },
      done: () => void load().then(fit),
      gone: ask,
    });
  } else ask();

  return {
    settings: () => ({ source: source === "grid" ? "grid" : source, side: String(side), cell: String(cell), prior, loss, ...level.settings(), ...(job ? { job } : {}) }),
    explain,
    python: () => `import whereish as wh\n\nplane = wh.Plane.around(lon, lat, "${side * cell} m")  # a public centre of the grid\nraster = wh.Raster(${side}, ${side}, (${cell}, ${cell}), (${-side * cell / 2}, ${-side * cell / 2}), plane)\nprior = None  # or a probability for each of the ${side * side} cells\nchannel = wh.optimal_channel(raster, prior, "${level.expression()}", loss="${loss}", gap=1e-4, time_limit=${seconds})\nprint(channel.loss, channel.lower_bound, channel.gap, channel.guarantee)\nprint(wh.adversary_error(channel, prior))\nchannel.save("channel.npz")\n`,
    command: () => `whereish build optimal --sites sites.csv --epsilon "${level.expression()}" --loss ${loss} --gap 1e-4 --time-limit ${seconds} -o channel.npz\nwhereish compare --sites sites.csv --epsilon "${level.expression()}"\n`,
    repaint: draw,
    leave: () => { gone = true; watching?.stop(); delete shell.map.element.dataset["shapes"]; },
  };

  function explain(): Explanation[] {
    return [{
      title: "The channel of least loss", formula: "minimise  Σ_x π(x) Σ_z K(x,z) · loss(x,z)\nsubject to  K(x,z) ≤ e^(ε·d(x,x′)) · K(x′,z)  for all x, x′, z",
      text: "A linear programme. Every channel at hand gives an upper bound; the dual gives a lower bound that no private channel can beat. The gap between them is certified, and the channel's rows are integers that are checked, triple by triple.",
      source: "Bordenabe, Chatzikokolakis, Palamidessi: Optimal geo-indistinguishable mechanisms (CCS 2014).",
    }, {
      title: "The adversary's best guess", formula: "H(z) = argmin over x̂ of Σ_x posterior(x | z) · d(x, x̂)",
      text: "He knows the channel and the prior. His expected error is at most the quality loss; for the optimum with loss = distance the two are equal.",
      source: "Shokri et al. (S&P 2011); Chatzikokolakis, ElSalamouny, Palamidessi (PETS 2017).",
    }];
  }
}

export const optimal: View = { id: "optimal", title: "Optimal mechanism", words: "The least error that a promise allows, proven from both sides.", mount };

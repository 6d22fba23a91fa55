// View 5: an audit of a matrix, a saved mechanism, or a sampler by its reports.
import * as L from "leaflet";
import { post, upload } from "../shell/api";
import { choice, colour, dropZone, empty, facts, field, fill, h, section, segments } from "../shell/dom";
import { type Watching, resumeJob, watchJob } from "../shell/job";
import { rough } from "../shell/rough";
import type { Explanation, Mounted, Shell, View } from "../shell/view";
import * as words from "../shell/words";

interface Result {
  title: string; way: "exact" | "statistical"; factor?: number | null; factor_lower: number | null; holds?: boolean; refuted: boolean;
  secrets?: number; reports?: number; metric?: string; worst?: number[]; chances?: [number, number]; pair?: [number, number][]; sites?: [number, number][];
  basis?: string; source?: string; numerics?: string; lower?: number; claim?: number; event?: string; hits?: [number, number]; samples?: number;
  confidence?: number; distance?: number; excess?: number | null;
}
interface Offered { samplers: string[]; built: { id: string; kind: string; title: string }[] }

// Three sites 100 m apart, ln 2 per 100 m: the exponential mechanism's shape, with one entry too bold.
const EXAMPLE = "0.60 0.30 0.10\n0.30 0.40 0.30\n0.05 0.30 0.65";
const PLACES = "39.9526, -75.1635\n39.9535, -75.1635\n39.9544, -75.1635";

function mount(shell: Shell, given: Record<string, string>): Mounted {
  let what = ["matrix", "saved", "sampler"].includes(given["what"] ?? "") ? given["what"]! : given["built"] ? "saved" : "matrix";
  let sampler = given["sampler"] ?? "laplace", built = given["built"] ?? "", samples = Number(given["samples"]) || 200_000;
  let job = given["job"] ?? "";
  let result: Result | null = null, offered: Offered = { samplers: [], built: [] };
  let gone = false, watching: Watching | null = null;
  const shapes = L.layerGroup().addTo(shell.map.layers);
  const level = rough(given, { apart: 100, factor: 2 }, (settled) => { if (settled) shell.changed(); });

  const body = h("div", {}), jobBox = h("div", { "data-test": "build" }), outcome = h("div", { "data-test": "outcome" });
  const matrixInput = h("textarea", { rows: 6, spellcheck: false, "data-test": "matrix" });
  matrixInput.value = EXAMPLE;
  const placesInput = h("textarea", { rows: 4, spellcheck: false, "data-test": "places" });
  placesInput.value = PLACES;
  const spacing = h("input", { type: "number", min: 0.001, step: "any", value: 100 });
  const columns = h("input", { type: "number", min: 0, step: 1, value: 0 });
  const claim = section("The claim", ...level.elements);
  const tabs = segments("What to audit", [["matrix", "Matrix"], ["saved", "Mechanism"], ["sampler", "Sampler"]], what, (value) => { what = value; showWhat(); shell.changed(); });

  fill(shell.panel, tabs, section("What to audit", body), claim, section("The verdict", jobBox, outcome));
  shell.map.map.setView([39.9535, -75.1635], 14, { animate: false });

  function showWhat(): void {
    claim.hidden = what === "saved";
    if (what === "matrix") {
      fill(body, field("A row for each secret, probabilities that sum to 1", matrixInput),
        field("Latitude, longitude of each secret (or leave empty)", placesInput),
        h("div", { class: "row" }, field("Else: spacing of sites (m)", spacing), field("sites in a row (0: all)", columns)),
        start("Audit all triples", () => run("matrix", { matrix: matrixInput.value, per_m: level.epsilon(), places: placesInput.value, spacing_m: Number(spacing.value), columns: Math.round(Number(columns.value)) })));
    } else if (what === "saved") {
      const options: [string, string][] = [["", offered.built.length ? "choose one that was built here" : "nothing was built here yet"], ...offered.built.map((one): [string, string] => [one.id, one.title])];
      fill(body, dropZone("Drop a saved mechanism (.npz), or choose a file", ".npz", (file) => void saved(file)),
        field("Or", choice(options, built, (value) => { built = value; shell.changed(); })),
        start("Audit it", () => built ? run("saved", { built }) : shell.fail("choose a mechanism that was built here, or drop a file")));
    } else {
      const options: [string, string][] = [["laplace", "Laplace noise of this library"], ["short", "Laplace with a tenth too little noise"],
        ...offered.samplers.map((name): [string, string] => [name, `your function ${name}`]), ...offered.built.map((one): [string, string] => [one.id, one.title])];
      fill(body, field("Sampler", choice(options, sampler, (value) => { sampler = value; shell.changed(); })),
        field("Reports for each secret", choice([["20000", "20,000"], ["200000", "200,000"], ["2000000", "2 million"]], String(samples), (value) => { samples = Number(value); shell.changed(); })),
        h("p", { class: "note" }, "To audit a function of your own, from (n, 2) metres to reports, start ", h("code", {}, "whereish workbench --sampler noise.py:blur"), ". A page cannot name code to be run."),
        start("Draw and test", () => run("sampler", { sampler, per_m: level.epsilon(), samples })));
    }
  }
  function start(label: string, act: () => void): HTMLElement {
    return h("div", { class: "buttons" }, h("button", { type: "button", class: "main-button", "data-test": "audit", onclick: act }, label));
  }
  async function saved(file: File): Promise<void> {
    try { run("saved", { upload: (await upload(file)).id }); } catch (error) { shell.fail(error as Error); }
  }
  function run(kind: string, body: unknown): void {
    shell.fail(null);
    watching?.stop();
    result = null;
    fill(outcome);
    draw();
    post<{ id: string }>(`/api/audit/${kind}`, body).then((started) => {
      if (gone) return;
      job = started.id;
      shell.changed();
      watch();
    }, (error: Error) => { showResult(); shell.fail(error); });
  }
  function watch(): void {
    watching = watchJob<{ reports: number }>(shell, jobBox, job, (steps) => [h("p", { class: "note" }, steps.length ? `${words.count(steps[steps.length - 1]!.reports)} reports drawn` : "Checking…")],
      () => void load(), () => { if (!result) showResult(); });
  }
  async function load(): Promise<void> {
    try {
      result = await post<Result>("/api/audit/result", { job });
      if (gone) return;
      fill(jobBox);
      showResult();
      draw(true);
      shell.announce(verdict(result));
    } catch (error) { if (!gone) { job = ""; showResult(); shell.fail(error as Error); } }
  }
  function verdict(told: Result): string {
    if (told.way === "statistical") return told.refuted ? "The claim is refuted" : "The claim is not refuted";
    return told.holds ? "The promise is kept" : told.refuted ? "The promise is broken" : "Kept up to rounding";
  }
  const number = (value: number | null | undefined): string => value === null || value === undefined ? "unbounded" : value.toPrecision(6);
  function showResult(): void {
    if (!result) { fill(outcome, empty("Nothing audited yet. An audit finds the least factor by which the promise must grow to be kept, and the two places where.")); return; }
    const told = result;
    const good = told.way === "exact" ? told.holds : !told.refuted;
    const head = h("p", { class: good ? "big" : "big bad", "data-test": "verdict" }, verdict(told));
    if (told.way === "exact") {
      const [x, y, z] = told.worst ?? [];
      fill(outcome, head, facts(["certified factor", number(told.factor)], ["no factor below", number(told.factor_lower)],
        ["secrets, reports", `${words.count(told.secrets ?? 0)}, ${words.count(told.reports ?? 0)}`],
        x === undefined ? null : ["worst pair of secrets", z === undefined ? `cells ${x} and ${y}` : `${x + 1} and ${y! + 1}, by report ${z + 1}`],
        told.chances ? ["its probabilities", `${told.chances[0].toPrecision(3)} and ${told.chances[1].toPrecision(3)}`] : null,
        told.basis ? ["basis", told.basis] : null),
      h("p", { class: "note" }, `Against ${told.metric ?? "the claim"}. ${told.source ?? ""} ${told.numerics ?? ""}`));
    } else {
      fill(outcome, head, facts(["level at least", `${number(told.factor_lower)} of the claim`], ["confidence", String(told.confidence)],
        ["reports for each secret", words.count(told.samples ?? 0)], ["hits of the two secrets", (told.hits ?? []).map(words.count).join(" and ")]),
      h("p", { class: "note" }, `Most telling event: ${told.event ?? ""}. ${told.excess === null || told.excess === undefined ? "With so few reports no excess would be seen." : `An excess below ${words.percent(told.excess)} would not be seen; a claim that is not refuted is not proven.`}`));
    }
    if (!told.pair) outcome.append(h("p", { class: "note" }, "These secrets have no place on Earth, so the pair is not on the map."));
  }
  function draw(fit = false): void {
    shapes.clearLayers();
    if (!result?.pair) { shell.legend(h("p", {}, result ? "No place on Earth to draw." : "The worst pair is drawn here.")); return; }
    const at = ([lon, lat]: [number, number]): L.LatLngTuple => [lat, lon];
    for (const site of result.sites ?? []) L.circleMarker(at(site), { radius: 4, color: colour("--soft"), weight: 1, fillOpacity: 0.5, interactive: false }).addTo(shapes);
    const [x, y] = result.pair as [[number, number], [number, number]];
    L.polyline([at(x), at(y)], { color: colour("--pin"), weight: 3, dashArray: "6 5", className: "worst-pair" }).addTo(shapes);
    for (const one of [x, y]) L.circleMarker(at(one), { radius: 8, color: colour("--card"), weight: 2, fillColor: colour("--pin"), fillOpacity: 1 }).addTo(shapes);
    if (fit) {
      const all = L.latLngBounds([at(x), at(y), ...(result.sites ?? []).map(at)]);
      shell.map.map.fitBounds(all.pad(0.6), { animate: false, maxZoom: 16 });
    }
    shell.legend(h("p", { class: "title" }, "Where the promise is used most"), h("p", {}, h("span", { class: "key truth" }), `two secrets, ${words.length(shell.map.map.distance(at(x), at(y)))} apart`),
      result.sites ? h("p", {}, h("span", { class: "key other" }), "other secrets") : "");
    shell.map.element.dataset["pair"] = "drawn";
  }

  void post<Offered>("/api/audit/offered").then((told) => { if (!gone) { offered = told; if (!told.built.some((one) => one.id === built)) built = ""; showWhat(); } }, shell.fail);
  showWhat();
  showResult();
  draw();
  if (job) resumeJob(job, { running: watch, done: () => void load(), gone: () => { job = ""; shell.changed(); } });

  return {
    settings: () => ({ what, ...(what === "sampler" ? { sampler, samples: String(samples) } : {}), ...(what === "saved" && built ? { built } : {}), ...(what === "saved" ? {} : level.settings()), ...(job ? { job } : {}) }),
    explain,
    python: () => what === "matrix"
      ? `import numpy as np\nimport whereish as wh\n\nmatrix = np.loadtxt("matrix.txt")\nplaces = np.loadtxt("places.txt", delimiter=",")[:, ::-1]  # longitude, latitude\nclaim = wh.Epsilon.of("${level.expression()}").per_m * wh.Geodesic()\nprint(wh.audit.exact(matrix, claim, sites=places))\n`
      : what === "saved" ? `import whereish as wh\n\nmechanism = wh.load("mechanism.npz")  # verified from its numbers\nprint(mechanism.guarantee)\n`
        : `import whereish as wh\n\nclaim = wh.Epsilon.of("${level.expression()}")\nmechanism = wh.GlobeLaplace(claim)  # or any function of (n, 2) secrets\nfound = wh.audit.statistical(mechanism, metric=wh.Geodesic(), epsilon=claim, at=[[2.35, 48.85]], samples=${samples}, confidence=0.9999)\nprint(found)\n`,
    command: () => what === "saved" ? "whereish audit mechanism.npz\n" : what === "sampler" ? "whereish workbench --sampler noise.py:blur\n" : "whereish audit channel.npz\n# a matrix becomes such a file by wh.Channel.of_matrix(matrix, sites).save(\"channel.npz\")\n",
    repaint: () => draw(),
    leave: () => { gone = true; watching?.stop(); delete shell.map.element.dataset["pair"]; },
  };

  function explain(): Explanation[] {
    return what === "sampler" ? [{
      title: "A statistical audit", formula: "hits of x among N ~ Binomial(N, p),   ln(p/(1−p)) = ln P(S|x) − ln P(S|y)",
      text: "An event S and a pair x, y are chosen on one part of the reports and counted on the other. The lower bound of Clopper and Pearson on p bounds the level from below, whatever the sampler claims. It can refute; it cannot prove.",
      source: "whereish, audit/statistical.py; Clopper, Pearson (1934).",
    }] : [{
      title: "An exact audit", formula: "factor = max over x, x′, z of  (ln K(x,z) − ln K(x′,z)) / d(x,x′)",
      text: "All triples are checked, with bounds on every rounding: the promise is kept if the factor is at most 1, broken if even the lower bound is above.",
      source: "whereish, audit/exact.py; the definition of geo-indistinguishability, Andrés et al. (CCS 2013).",
    }];
  }
}

export const audit: View = { id: "audit", title: "Audit", words: "Is the promise kept? The factor, and the two places where it is used most.", mount };

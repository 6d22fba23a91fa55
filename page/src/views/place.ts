// View 1: one place, its reports, what an attacker learns, and what is near.
import * as L from "leaflet";
import { type Answer, Latest, post, postBinary, upload } from "../shell/api";
import { choice, colour, dropZone, empty, facts, field, fill, h, section, segments } from "../shell/dom";
import { HEAT, PointsLayer, heatRamp, picture, rampPicture } from "../shell/map";
import { Pin, type PlaceDegrees } from "../shell/pin";
import type { Explanation, Mounted, Shell, View } from "../shell/view";
import * as words from "../shell/words";

interface Cloud { mean_m: number; half_m: number; most_m: number; note: string; guarantee: { metric: string; basis: string; source: string; numerics: string } }
interface Stage { error_m: number; area_km2: number; near_truth: number }
interface Attack { bounds: [number, number, number, number]; count: number; near_m: number; stages: Record<"before" | "one" | "many", Stage> }
interface Near {
  report: [number, number]; radius_m: number; fetched: number; covered: boolean; per_km2: number; ratio: number;
  more_kb: number; names: string[]; distances_m: number[]; example: boolean;
}
interface Shelved { id: string; kind: string; title: string }
interface Spec { kind: string; per_m?: number; distance_m?: number; level?: number; id?: string }

const START: PlaceDegrees = { lon: -75.1635, lat: 39.9526 };
/** Whether the first cloud was drawn: benchmarks read when. */
let timed = false;
/** The pin stays while the page is open, and nowhere else. */
let remembered: PlaceDegrees = START;

const LEAST = Math.log(20), MOST = Math.log(50_000);

function mount(shell: Shell, given: Record<string, string>): Mounted {
  const number = (name: string, otherwise: number): number => {
    const value = Number(given[name]);
    return given[name] !== undefined && Number.isFinite(value) && value > 0 ? value : otherwise;
  };
  let kind = given["mechanism"] ?? "laplace";
  let apart = number("apart", 200), times = Math.max(1.01, number("factor", 4));
  let radius = number("radius", 300), confidence = Math.min(0.999, number("confidence", 0.95));
  let show: "cloud" | "attack" | "near" = given["show"] === "attack" || given["show"] === "near" ? given["show"] : "cloud";
  let stage = given["stage"] ?? "one", prior = given["prior"] ?? "even";
  let pois: { id: string; name: string } | null = null;
  let shelf: Shelved[] = [];
  let cloud: Cloud | null = null, attack: Answer<Attack> | null = null, near: Answer<Near> | null = null;
  let gone = false;

  const epsilon = (): number => Math.log(times) / apart;
  const spec = (): Spec =>
    kind === "laplace" ? { kind, per_m: epsilon() }
      : kind === "location" ? { kind, distance_m: apart, level: Math.log(times) }
        : { kind: "built", id: kind };

  // The map.
  const points = new PointsLayer([colour("--cloud")], 3.4, 0.42);
  const dots = new PointsLayer(["#8b949a", "#c2281d"], 5, 0.9);
  const rings = L.layerGroup();
  const heat = L.layerGroup();
  const pin = new Pin(shell.map.map, remembered, (place, settled) => { remembered = place; moved(settled); });
  heat.addTo(shell.map.layers);
  points.addTo(shell.map.layers);
  dots.addTo(shell.map.layers);
  rings.addTo(shell.map.layers);
  pin.marker.addTo(shell.map.layers);

  // The panel.
  const rough = h("p", { class: "big", "data-test": "rough" }), promise = h("p", { class: "hint", "data-test": "promise" });
  const slider = h("input", { type: "range", min: LEAST, max: MOST, step: 0.01, "aria-label": "How rough reports are" });
  const apartInput = h("input", { type: "number", min: 1, max: 1e6, step: "any", value: apart });
  const timesInput = h("input", { type: "number", min: 1.01, max: 1e9, step: "any", value: times });
  const mechanism = choice([["laplace", "Laplace noise"], ["location", "(D, ε) optimum"]], kind, (value) => { kind = value; sync(); ask(true); });
  const measured = h("div", { "data-test": "measured" });
  const undo = h("button", { type: "button", class: "plain", disabled: true, "data-test": "undo", onclick: () => pin.undo() }, "Undo move");
  const find = h("input", { type: "search", placeholder: "Town, or latitude, longitude", autocomplete: "off", "data-test": "find" });
  const found = h("ul", { class: "results", "aria-label": "Towns found" });
  const attackBox = h("div", { "data-test": "attack" }), nearBox = h("div", { "data-test": "near" });
  const stageButtons = segments("What the attacker has seen",
    [["before", "Nothing"], ["one", "1 report"], ["many", "10 reports"], ["pinned", "10, pinned"]], stage,
    (value) => {
      const fresh = attack !== null && show === "attack";
      stage = value; show = "attack"; showButtons.select("attack");
      if (fresh) drawAttack(); else refresh();
      changed();
    });
  const showButtons = segments("Drawn on the map", [["cloud", "Reports"], ["attack", "Attacker"], ["near", "Nearby"]], show,
    (value) => { show = value as typeof show; refresh(); changed(); });

  slider.addEventListener("input", () => {
    const perM = 2 / Math.exp(Number(slider.value));
    times = Math.exp(perM * apart);
    if (!(times < 1e9)) { times = 4; apart = Math.log(4) / perM; }
    if (times < 1.02) { times = 4; apart = Math.round(Math.log(4) / perM); }
    sync();
    ask(false);
  });
  slider.addEventListener("change", () => ask(true));
  apartInput.addEventListener("change", () => { apart = Math.max(1, Number(apartInput.value) || apart); sync(); ask(true); });
  timesInput.addEventListener("change", () => { times = Math.max(1.01, Number(timesInput.value) || times); sync(); ask(true); });
  find.addEventListener("input", () => search.ask(find.value));
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const typed = /^\s*(-?\d+(?:\.\d+)?)\s*[,; ]\s*(-?\d+(?:\.\d+)?)\s*$/.exec(find.value);
    if (typed) jump({ lat: Number(typed[1]), lon: Number(typed[2]) });
    else found.querySelector("button")?.click();
  });

  const radiusInput = h("input", { type: "range", min: Math.log(50), max: Math.log(5000), step: 0.02, value: Math.log(radius), "aria-label": "Area of interest" });
  const radiusWords = h("p", { class: "hint" });
  radiusInput.addEventListener("input", () => { radius = Math.round(Math.exp(Number(radiusInput.value)) / 10) * 10; radiusWords.textContent = `Everything within ${words.length(radius)} of you`; });
  radiusInput.addEventListener("change", () => { show = "near"; showButtons.select(show); refresh(); changed(); });

  fill(shell.panel,
    showButtons,
    section("Your place",
      field("Find a place", find), found,
      h("div", { class: "buttons" }, undo),
      h("p", { class: "note" }, "Drag the pin, click it and use the arrow keys, or click the map. It stays in this page's memory: not in the address, not on disk.")),
    section("How rough",
      rough, slider, promise,
      h("div", { class: "row" }, field("Places this far apart (m)", apartInput), field("look alike within a factor", timesInput)),
      field("Mechanism", mechanism), measured),
    section("What an attacker learns",
      field("He believes before", choice([["even", "every place alike"], ["people", "where people live (US)"]], prior, (value) => { prior = value; show = "attack"; showButtons.select(show); refresh(); changed(); })),
      h("p", { class: "hint" }, "He has seen"), stageButtons, attackBox),
    section("What is nearby",
      field("Area of interest", radiusInput, radiusWords),
      dropZone("Drop your own places (CSV with lon, lat; GeoJSON), or choose a file", ".csv,.geojson,.parquet,.jsonl", (file) => void ownPlaces(file)),
      nearBox));
  radiusWords.textContent = `Everything within ${words.length(radius)} of you`;

  const askCloud = new Latest(
    (asked: { place: PlaceDegrees; spec: Spec; settled: boolean; since: number }) => postBinary<Cloud>("/api/place/cloud", { place: asked.place, spec: asked.spec, count: 2000 }),
    (answer, asked) => {
      if (gone) return;
      cloud = answer.head;
      shell.fail(null);
      if (show === "cloud") points.set(answer.arrays["reports"]!);
      drawRings(asked.place);
      tell();
      if (!timed) performance.measure("first-cloud", { start: 0 });
      timed = true;
      performance.measure("cloud", { start: asked.since });
      if (asked.settled) refresh();
    },
    (error) => { if (!gone) { shell.fail(error); fill(measured, empty("No reports to show; see the message above.")); points.set([]); rings.clearLayers(); } });
  const askAttack = new Latest(
    (asked: unknown) => postBinary<Attack>("/api/place/attack", asked),
    (answer) => { if (!gone) { attack = answer; shell.fail(null); drawAttack(); } },
    (error) => { if (!gone) { shell.fail(error); attack = null; drawAttack(); } });
  const askNear = new Latest(
    (asked: unknown) => postBinary<Near>("/api/place/nearby", asked),
    (answer) => { if (!gone) { near = answer; shell.fail(null); drawNear(); } },
    (error) => { if (!gone) { shell.fail(error); near = null; drawNear(); } });
  const search = new Latest(
    (text: string) => post<{ name: string; country: string; lon: number; lat: number }[]>("/api/place/search", { text }),
    (towns) => fill(found, ...towns.map((town) => h("li", {}, h("button", {
      type: "button", onclick: () => { fill(found); find.value = town.name; jump(town); },
    }, town.name), h("span", {}, town.country)))),
    (error) => shell.fail(error));

  function jump(place: PlaceDegrees): void {
    if (!(Math.abs(place.lat) <= 85 && Math.abs(place.lon) <= 180)) {
      shell.fail("a place must be latitude, longitude in degrees, such as 48.85, 2.35, and not beyond 85 degrees");
      return;
    }
    pin.put({ lon: place.lon, lat: place.lat });
    shell.map.map.setView([place.lat, place.lon], shell.map.map.getZoom(), { animate: false });
  }
  function moved(settled: boolean): void {
    undo.disabled = !pin.canUndo;
    rings.clearLayers();
    if (show !== "cloud") { heat.clearLayers(); dots.set([]); }
    ask(settled);
  }
  function ask(settled: boolean): void {
    askCloud.ask({ place: pin.place, spec: spec(), settled, since: performance.now() });
    if (settled) changed();
  }
  function refresh(): void {
    points.set(show === "cloud" ? lastReports() : []);
    heat.clearLayers();
    dots.set([]);
    if (show === "cloud") { if (cloud) drawRings(pin.place); shell.legend(...cloudLegend()); if (lastReports().length === 0 && cloud) ask(false); }
    if (show === "attack") { drawRings(pin.place); askAttack.ask({ place: pin.place, spec: spec(), prior, count: 10 }); }
    if (show === "near") { rings.clearLayers(); askNear.ask({ place: pin.place, spec: spec(), radius_m: radius, confidence, upload: pois?.id ?? "" }); }
    if (!attack) fill(attackBox, empty("Choose what he has seen to see where he believes you are."));
    if (!near) fill(nearBox, empty("Choose Nearby above to ask around one report."));
  }
  let reports: ArrayLike<number> = [];
  const setPoints = points.set.bind(points);
  points.set = (xy, classes = null) => { if (xy.length) reports = xy; setPoints(xy, classes); };
  function lastReports(): ArrayLike<number> { return reports; }

  function drawRings(place: PlaceDegrees): void {
    rings.clearLayers();
    if (!cloud || show === "near") return;
    for (const [metres, dash] of [[cloud.half_m, ""], [cloud.most_m, "6 5"]] as const) {
      L.circle([place.lat, place.lon], { radius: metres, color: colour("--cloud"), weight: 2, fill: false, dashArray: dash, interactive: false }).addTo(rings);
    }
  }
  function cloudLegend(): Node[] {
    return [h("p", { class: "title" }, "2,000 possible reports"),
      h("p", {}, h("span", { class: "key truth" }), "your place"),
      h("p", {}, h("span", { class: "key cloud" }), "a report that it may give"),
      h("p", {}, h("span", { class: "key ring" }), "half (line) and 95% (dashed) of them")];
  }
  function tell(): void {
    if (!cloud) return;
    rough.textContent = `About ${words.about(cloud.mean_m)} rough`;
    fill(measured, facts(
      ["mean error", words.length(cloud.mean_m)], ["half of the reports within", words.length(cloud.half_m)],
      ["95% within", words.length(cloud.most_m)], ["guarantee", cloud.guarantee.basis]),
    h("p", { class: "note" }, `Keeps ${cloud.guarantee.metric}. ${cloud.note}`));
    if (show === "cloud") shell.legend(...cloudLegend());
    shell.announce(`${rough.textContent}; half of the reports within ${words.length(cloud.half_m)}`);
  }
  function sync(): void {
    const here = kind === "laplace" ? epsilon() : null;
    slider.disabled = kind !== "laplace";
    apartInput.value = String(Number(apart.toPrecision(4)));
    timesInput.value = String(Number(times.toPrecision(4)));
    apartInput.disabled = timesInput.disabled = kind !== "laplace" && kind !== "location";
    slider.value = String(Math.log(2 / epsilon()));
    slider.setAttribute("aria-valuetext", `about ${words.about(2 / epsilon())} rough`);
    promise.textContent = kind === "laplace"
      ? `Two places ${words.length(apart)} apart: at most a factor ${words.factor(times)}. ε = ${words.epsilon(here!)}.`
      : kind === "location" ? `Places up to ${words.length(apart)} apart: at most a factor ${words.factor(times)}; farther ones are not promised anything.`
        : "The promise is that of the mechanism you built.";
  }
  function drawAttack(): void {
    if (!attack) { fill(attackBox, empty("Nothing to show here.")); heat.clearLayers(); return; }
    const name = (stage === "pinned" ? "one" : stage) as "before" | "one" | "many";
    const told = attack.head.stages[name];
    const seen = stage === "pinned" ? "A pinned place is reported once and then reused: ten questions tell no more than one."
      : stage === "many" ? "Ten independent reports average out: the promise is ten times weaker." : stage === "one" ? "One report narrows him down, by no more than the promise." : "This is what he believes anyway.";
    fill(attackBox, facts(
      ["his best guess is off by, on average", words.length(told.error_m)],
      ["he is 95% sure within", words.area(told.area_km2)],
      [`you within ${words.length(attack.head.near_m)} of his map`, words.percent(told.near_truth)]),
    h("p", { class: "note" }, seen));
    if (show !== "attack") return;
    heat.clearLayers();
    const values = attack.arrays[name]!, [rows, columns] = attack.shape[name] as [number, number];
    let most = 0;
    for (const value of values) most = Math.max(most, value);
    const [west, south, east, north] = attack.head.bounds;
    L.imageOverlay(picture(values, rows, columns, heatRamp, (v) => Math.sqrt(v / most)), [[south, west], [north, east]],
      { className: "heat", alt: "Where the attacker believes you are", interactive: false }).addTo(heat);
    const used = stage === "before" ? [] : attack.arrays["reports"]!.subarray(0, stage === "many" ? 20 : 2);
    dots.set(used, new Uint8Array(used.length / 2).fill(1));
    const cell = attack.head.stages["before"].area_km2 / (0.95 * rows * columns);
    shell.legend(h("p", { class: "title" }, "Where he believes you are"),
      h("img", { src: rampPicture(heatRamp), alt: "", "data-stops": HEAT.length }),
      h("p", { class: "ends" }, h("span", {}, "0"), h("span", {}, words.percent(most / cell / 4)), h("span", {}, `${words.percent(most / cell)} per km²`)),
      h("p", {}, h("span", { class: "key truth" }), "reports that he has seen"));
    shell.announce(`His best guess is off by ${words.length(told.error_m)} on average`);
  }
  function drawNear(): void {
    if (!near) { fill(nearBox, empty("Nothing to show here.")); return; }
    const told = near.head;
    fill(nearBox, facts(
      ["asked around the report within", words.length(told.radius_m)], ["places fetched", words.count(told.fetched)],
      ["of them wanted", words.count(near.arrays["near"]!.length / 2)],
      ["area asked for / wanted", `${words.factor(told.ratio)} times`], ["traffic on top (200 bytes each)", `${words.factor(told.more_kb)} kB`],
      ["your area was inside", told.covered ? "yes" : "no, this time"]),
    h("p", { class: "note" }, told.example ? "These places are made up, the same for everybody, so that there is something to find." : "Your own places."),
    h("ul", { class: "results", "aria-label": "Nearest places", tabindex: 0 }, ...told.names.slice(0, 12).map((name, i) =>
      h("li", {}, h("span", {}, name || "place"), h("span", {}, words.length(told.distances_m[i]!))))));
    if (show !== "near") return;
    const fetched = near.arrays["fetched"]!, wanted = near.arrays["near"]!;
    const all = new Float64Array(fetched.length + wanted.length);
    all.set(fetched);
    all.set(wanted, fetched.length);
    dots.set(all, Uint8Array.from({ length: all.length / 2 }, (_, i) => (i < fetched.length / 2 ? 0 : 1)));
    rings.clearLayers();
    L.circle([told.report[1], told.report[0]], { radius: told.radius_m, color: colour("--warn"), weight: 2, dashArray: "6 5", fill: false, interactive: false }).addTo(rings);
    L.circle([pin.place.lat, pin.place.lon], { radius, color: colour("--pin"), weight: 2, fill: false, interactive: false }).addTo(rings);
    shell.legend(h("p", { class: "title" }, "Asking around a report"),
      h("p", {}, h("span", { class: "key found" }), `places within ${words.length(radius)} of you`),
      h("p", {}, h("span", { class: "key other" }), "other places that were fetched"),
      h("p", {}, h("span", { class: "key ask" }), `what the service is asked: ${words.length(told.radius_m)}`));
  }
  async function ownPlaces(file: File): Promise<void> {
    try {
      pois = await upload(file);
      show = "near";
      showButtons.select(show);
      refresh();
    } catch (error) { shell.fail(error as Error); }
  }
  function changed(): void { shell.changed(); }

  shell.map.map.on("click", (event: L.LeafletMouseEvent) => {
    const to = event.latlng.wrap();
    pin.put({ lon: to.lng, lat: to.lat });
  });
  const needsShelf = kind !== "laplace" && kind !== "location";
  void post<Shelved[]>("/api/shelf").then((all) => {
    shelf = all;
    for (const one of all) mechanism.append(h("option", { value: one.id, selected: one.id === kind }, one.title));
    if (all.length === 0) mechanism.append(h("option", { disabled: true }, "a map or a channel: build one in the other views"));
    if (!needsShelf) return;
    if (!all.some((one) => one.id === kind)) { kind = "laplace"; mechanism.value = kind; sync(); }
    ask(true);
  }, (error: Error) => shell.fail(error));
  sync();
  fill(attackBox, empty("Choose what he has seen to see where he believes you are."));
  fill(nearBox, empty("Choose Nearby above to ask around one report."));
  if (!needsShelf) queueMicrotask(() => ask(true));  // once the view is mounted
  const zoomFor = Math.min(16, Math.max(3, 14.5 - Math.log2((2 / epsilon()) / 288)));
  shell.map.map.setView([remembered.lat, remembered.lon], Math.round(zoomFor), { animate: false });

  return {
    settings: () => ({
      mechanism: kind, apart: String(Number(apart.toPrecision(6))), factor: String(Number(times.toPrecision(6))),
      show, ...(show === "attack" ? { stage, prior } : {}), ...(show === "near" ? { radius: String(radius), confidence: String(confidence) } : {}),
    }),
    explain,
    python: () => python(),
    command: () => command(),
    repaint: () => { if (show === "cloud") setPoints(reports); drawRings(pin.place); },
    leave: () => { gone = true; },
  };

  function title(): string { return shelf.find((one) => one.id === kind)?.title ?? ""; }
  function python(): string {
    const made = kind === "laplace" ? `mechanism = wh.GlobeLaplace("ln(${Number(times.toPrecision(6))})/${Number(apart.toPrecision(6))} m")`
      : kind === "location" ? `promise = wh.Distinguishability.location("${apart} m", ${Math.log(times)})\nmechanism = wh.OptimalCircular(promise, plane=wh.Plane.around(lon, lat, "100 km"))  # a public centre, not your place`
        : `mechanism = wh.load("${title() || "mechanism"}.npz")  # saved in the view that built it`;
    const head = "import whereish as wh\n\nlon, lat = ...  # your place, in degrees\n";
    if (show === "near") {
      return `${head}${made}\nsource = wh.MemorySource("places.csv")\nfound = wh.nearby((lon, lat), "${radius} m", source=source, mechanism=mechanism, confidence=${confidence})\nprint(found.radius, found.fetched, found.results[:5])\n`;
    }
    const space = "secret = mechanism.space.from_degrees([lon], [lat])\n";
    const rest = show === "attack" ? `reports = [mechanism.report(secret) for _ in range(${stage === "many" ? 10 : 1})]\n# ln P(report | place), to be added to the log of a prior over places:\nlogs = sum(mechanism.log_density(report, places) for report in reports)\n`
      : `report = mechanism.report(secret)\nprint(mechanism.space.to_degrees(report), mechanism.guarantee)\n`;
    return `${head}${made}\n${space}${rest}`;
  }
  function command(): string {
    const level = `ln(${Number(times.toPrecision(6))})/${Number(apart.toPrecision(6))} m`;
    const noise = kind === "laplace" ? `--epsilon "${level}"` : kind === "location" ? `--epsilon "${level}"` : "--mechanism mechanism.npz";
    const note = kind === "location" ? "# the (D, ε) optimum is in Python only; this is Laplace noise of the same level at D\n" : "";
    if (show === "near") return `whereish nearby --at LAT,LON --radius "${radius} m" --places places.csv ${noise} --confidence ${confidence}\n${note}`;
    return `whereish report --at LAT,LON ${noise}\n${note}`;
  }
  function explain(): Explanation[] {
    const all: Explanation[] = [];
    if (kind === "laplace") all.push({
      title: "Laplace noise on the globe", formula: "density of report z given place x  ∝  e^(−ε·d(x,z))\nP(S | x) ≤ e^(ε·d(x,x′)) · P(S | x′)",
      text: `Here ε = ${words.epsilon(epsilon())}, so for two places ${words.length(apart)} apart no report is more than ${words.factor(times)} times likelier for one than for the other, whatever the attacker knows. The mean error is about 2/ε.`,
      source: "Andrés, Bordenabe, Chatzikokolakis, Palamidessi: Geo-indistinguishability (CCS 2013).",
    });
    else if (kind === "location") all.push({
      title: "The optimum of (D, ε)-location privacy", formula: "|ln P(S|x) − ln P(S|x′)| ≤ ε  whenever  d(x,x′) ≤ D",
      text: "Of all noise that keeps this, the one with the least mean error: a staircase with steps of width D.",
      source: "ElSalamouny, Gambs: Optimal noise functions for location privacy on continuous regions (2018); the optimum for this case is whereish's own.",
    });
    else all.push({ title: title() || "A mechanism you built", formula: cloud?.guarantee.metric ?? "", text: cloud?.guarantee.source ?? "", source: "See the view that built it." });
    if (show === "attack") all.push({
      title: "What the attacker believes", formula: "posterior(x)  ∝  prior(x) · P(z₁|x) · … · P(z_k|x)",
      text: "Bayes' rule with the mechanism's own law. His best guess is the posterior's mean. k independent reports of one place keep only k·ε; a pinned place is reported once.",
      source: "Shokri et al.: Quantifying location privacy (S&P 2011).",
    });
    if (show === "near") all.push({
      title: "Area of interest, area of retrieval", formula: "rad_R = rad_I + C⁻¹(confidence)",
      text: `C is the distribution of the distance between you and your report. With probability at least ${confidence} everything you want is in what the service sends; what is too far is filtered here. The radius depends on public numbers only.`,
      source: "Andrés et al. (CCS 2013), section 5.",
    });
    return all;
  }
}

export const place: View = { id: "place", title: "One place", words: "See which reports a place may give, and what they tell.", mount };

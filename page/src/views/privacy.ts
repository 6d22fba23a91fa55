// View 2: a privacy map, zones on it, its certified mechanism, and the reports of any place.
import * as L from "leaflet";
import { type Answer, Latest, download, post, postBinary, upload } from "../shell/api";
import { choice, colour, dropZone, empty, facts, field, fill, h, section, segments } from "../shell/dom";
import { type Watching, resumeJob, watchJob } from "../shell/job";
import { type Ramp, heatRamp, levelRamp, lossRamp, picture, rampPicture } from "../shell/map";
import type { Explanation, Mounted, Shell, View } from "../shell/view";
import * as words from "../shell/words";

interface Preview { rows: number; columns: number; cell_m: number; low_km: number; high_km: number; bounds: [number, number, number, number]; said: string }
interface Built {
  bounds: [number, number, number, number]; rows: number; columns: number; low_km: number; high_km: number; factor: number; basis: string; source: string;
  numerics: string; metric: string; digest: string; places: string; rmse_m: number; laplace_rmse_m: number; lowered_least: number;
  lowered_mean: number; account: string;
}
interface Away { mean_m: number; half_m: number; most_m: number }
interface At extends Away { bounds: [number, number, number, number]; per_km: number; cell_km2: number; largest: number; own: Away; least: Away }
interface Zone { lon: number; lat: number; radius_m: number; per_km: number }
interface Step { round: number; factor: number }
type Layer = "levels" | "used" | "lowered" | "reports";

/** Zones may be drawn around somebody's home: they stay in this page's memory. */
let zones: Zone[] = [];
let file: { id: string; name: string } | null = null;

function mount(shell: Shell, given: Record<string, string>): Mounted {
  let cells = Math.min(100, Math.max(10, Math.round(Number(given["cells"]) || 40)));
  let places = given["places"] === "continuous" ? "continuous" : "cells";
  let job = given["job"] ?? "";
  let layer: Layer = "levels";
  let slope = "1e-4", offset = "0.4", high = "", unit = "people/km2", cell = "", defaultLevel = "1/km", column = "";
  let preview: Answer<Preview> | null = null, built: Answer<Built> | null = null, at: Answer<At> | null = null;
  let spot: { lon: number; lat: number } | null = null;
  let gone = false, drawing = false, watching: Watching | null = null;
  let zoneLevel = 2;

  const pictures = L.layerGroup().addTo(shell.map.layers), zoneShapes = L.layerGroup().addTo(shell.map.layers);
  const marks = L.layerGroup().addTo(shell.map.layers);

  const about = h("div", { "data-test": "about" }), buildBox = h("div", { "data-test": "build" }), certificate = h("div", { "data-test": "certificate" });
  const placeBox = h("div", { "data-test": "at" }), zoneList = h("ul", { class: "results", "aria-label": "Zones" });
  const layerButtons = segments("Drawn on the map", [["levels", "Asked"], ["used", "In use"], ["lowered", "Lowered"], ["reports", "Reports"]], layer,
    (value) => { layer = value as Layer; draw(); });
  const buildButton = h("button", { type: "button", class: "main-button", "data-test": "build-button", onclick: () => void build() }, "Build the mechanism");
  const drawButton = h("button", { type: "button", class: "plain", "data-test": "draw-zone", onclick: () => toggleDrawing() }, "Draw a zone");
  const fileOptions = h("div", { hidden: true });
  const sourceBox = h("div", {});
  const text = (value: string, put: (value: string) => void): HTMLInputElement => {
    const made = h("input", { type: "text", value, onchange: () => { put(made.value); ask(); } });
    return made;
  };
  fill(fileOptions,
    h("p", { class: "note" }, "A grid or tracts of densities: level = slope · density + offset, per km."),
    h("div", { class: "row" }, field("Slope", text(slope, (v) => { slope = v; })), field("Offset (per km)", text(offset, (v) => { offset = v; })), field("Largest level", text(high, (v) => { high = v; }))),
    h("div", { class: "row" }, field("Unit of the file", text(unit, (v) => { unit = v; })), field("Cell, as 500 m", text(cell, (v) => { cell = v; })), field("Tracts: column", text(column, (v) => { column = v; }))),
    h("p", { class: "note" }, "GeoJSON zones with a property \"epsilon\", such as 0.5/km, need a cell and a level elsewhere. The map reaches a quarter beyond them."),
    field("Level outside all zones", text(defaultLevel, (v) => { defaultLevel = v; })));
  const sizes = choice([["20", "20 × 20 cells"], ["40", "40 × 40 cells"], ["60", "60 × 60 cells"], ["100", "100 × 100 cells"]], String(cells), (value) => { cells = Number(value); ask(); });
  const zoneInput = h("input", { type: "number", min: 0.001, max: 1000, step: "any", value: zoneLevel, onchange: () => { zoneLevel = Number(zoneInput.value) || zoneLevel; } });
  const zoneRadius = h("input", { type: "number", min: 1, step: "any", value: 1500 });

  fill(shell.panel,
    layerButtons,
    section("The map", sourceBox, field("Cells of the example", sizes),
      dropZone("Drop a raster (GeoTIFF, ASCII grid) or GeoJSON zones here, or choose a file", ".tif,.tiff,.asc,.geojson,.json,.parquet,.gpkg,.fgb", (one) => void own(one)),
      fileOptions, about),
    section("Zones",
      h("p", { class: "note" }, "A zone has a level of its own, such as a tight one around homes. The map is public: a zone in the middle of which you live tells where you live. Draw it larger, and not around you."),
      h("div", { class: "row" }, field("Level in the zone (per km)", zoneInput), field("Radius (m)", zoneRadius)),
      h("div", { class: "buttons" }, drawButton,
        h("button", { type: "button", class: "plain", "data-test": "zone-here", onclick: () => { const c = shell.map.map.getCenter(); addZone(c.lng, c.lat, Number(zoneRadius.value)); } }, "Add at the map's centre")),
      zoneList),
    section("The mechanism",
      field("A secret is", choice([["cells", "a cell: faster, less noise"], ["continuous", "a place, as a GPS gives it"]], places, (value) => { places = value; changed(); })),
      h("div", { class: "buttons" }, buildButton), buildBox, certificate),
    section("One place on it", placeBox));

  const asking = new Latest(
    (asked: unknown) => postBinary<Preview>("/api/map/preview", asked),
    (answer) => {
      if (gone) return;
      const first = preview === null;
      preview = answer;
      shell.fail(null);
      const told = answer.head;
      fill(about, facts(["cells", `${told.rows} × ${told.columns}, ${words.length(told.cell_m)} each`],
        ["levels", `${told.low_km.toPrecision(3)} to ${told.high_km.toPrecision(3)} per km`]), h("p", { class: "note" }, told.said));
      if (first || asking.fit) fit(told.bounds);
      asking.fit = false;
      draw();
      changed();
    },
    (error) => { if (!gone) { shell.fail(error); if (!preview) fill(about, empty("No map; see the message above.")); } }) as Latest<unknown, Answer<Preview>> & { fit?: boolean };
  const askingAt = new Latest(
    (place: { lon: number; lat: number }) => postBinary<At>("/api/map/at", { job, place }),
    (answer) => { if (!gone) { at = answer; shell.fail(null); layer = "reports"; layerButtons.select(layer); draw(); tellPlace(); } },
    (error) => { if (!gone) shell.fail(error); });

  function request(): Record<string, unknown> {
    const source = file
      ? { upload: file.id, slope: Number(slope), offset: Number(offset), high: high ? Number(high) : null, unit, cell, default: file.name.endsWith("json") ? defaultLevel : "", column }
      : { cells };
    return { source, zones, places };
  }
  function ask(): void { forget(); asking.ask(request()); }
  function forget(): void {
    job = "";
    built = null;
    at = null;
    watching?.stop();
    buildButton.disabled = false;
    fill(buildBox);
    fill(certificate, empty("Not built yet. Building solves for the report's law and certifies it."));
    fill(placeBox, empty("Build first, then click a place on the map to see the reports that it gives."));
    layer = "levels";
    layerButtons.select(layer);
  }
  function fit([west, south, east, north]: [number, number, number, number]): void {
    shell.map.map.fitBounds([[south, west], [north, east]], { animate: false, padding: [16, 16] });
  }
  async function own(chosen: File): Promise<void> {
    try {
      file = await upload(chosen);
      zones = [];
      asking.fit = true;
      showSource();
      showZones();
      ask();
    } catch (error) { shell.fail(error as Error); }
  }
  function showSource(): void {
    fileOptions.hidden = file === null;
    (sizes.parentElement as HTMLElement).hidden = file !== null;
    fill(sourceBox, file
      ? h("p", {}, `Your file ${file.name}. `, h("button", { type: "button", class: "plain", onclick: () => { file = null; zones = []; asking.fit = true; showSource(); showZones(); ask(); } }, "Back to the example"))
      : h("p", { class: "note" }, "Philadelphia as in the paper: a patch of 9 by 6.2 miles, looser where more people live."));
  }
  function toggleDrawing(): void {
    drawing = !drawing;
    drawButton.textContent = drawing ? "Click the middle, then the edge (Esc ends)" : "Draw a zone";
    shell.map.element.style.cursor = drawing ? "crosshair" : "";
    half = null;
    marks.clearLayers();
  }
  let half: L.LatLng | null = null;
  shell.map.map.on("click", (event: L.LeafletMouseEvent) => {
    const to = event.latlng.wrap();
    if (!drawing) {
      spot = { lon: to.lng, lat: to.lat };
      if (built) askingAt.ask(spot);
      else shell.announce("Build the mechanism first, then click a place");
      return;
    }
    if (!half) {
      half = to;
      L.circleMarker(to, { radius: 4, color: colour("--pin") }).addTo(marks);
      return;
    }
    const centre = half;
    toggleDrawing();
    addZone(centre.lng, centre.lat, Math.max(50, shell.map.map.distance(centre, to)));
  });
  const escape = (event: KeyboardEvent): void => { if (event.key === "Escape" && drawing) toggleDrawing(); };
  addEventListener("keydown", escape);
  function addZone(lon: number, lat: number, radius: number): void {
    zones = [...zones, { lon, lat, radius_m: Math.round(radius), per_km: Number(zoneInput.value) || zoneLevel }];
    showZones();
    ask();
  }
  function showZones(): void {
    zoneShapes.clearLayers();
    for (const zone of zones) {
      L.circle([zone.lat, zone.lon], { radius: zone.radius_m, color: colour("--pin"), weight: 2, dashArray: "4 4", fill: false, interactive: false }).addTo(zoneShapes);
    }
    fill(zoneList, ...zones.map((zone, index) => h("li", {}, h("span", {}, `${words.length(zone.radius_m)} around a point: ${zone.per_km} per km`),
      h("button", { type: "button", class: "remove", "aria-label": `Remove zone ${index + 1}`, onclick: () => { zones = zones.filter((_, i) => i !== index); showZones(); ask(); } }, "remove"))));
  }
  async function build(): Promise<void> {
    buildButton.disabled = true;
    shell.fail(null);
    try {
      const started = await post<{ id: string }>("/api/map/build", request());
      job = started.id;
      watch();
      changed();
    } catch (error) { buildButton.disabled = false; shell.fail(error as Error); }
  }
  function watch(): void {
    watching = watchJob<Step>(shell, buildBox, job, (steps) => [
      h("p", { class: "note", "data-test": "rounds" }, steps.length === 0 ? "Solving for the weights…"
        : `Round ${steps[steps.length - 1]!.round}: at most ${steps[steps.length - 1]!.factor.toFixed(4)} of the promise ${steps[steps.length - 1]!.factor <= 1 ? "(kept)" : "(still too much: lowering)"}`),
    ], () => void show(), () => { buildButton.disabled = false; });
  }
  async function show(): Promise<void> {
    try {
      const answer = await postBinary<Built>("/api/map/result", { job });
      if (gone) return;
      built = answer;
    } catch (error) {
      if (!gone) { forget(); asking.ask(request()); shell.fail(error as Error); }
      return;
    }
    const told = built.head;
    fill(buildBox);
    fill(certificate, facts(
      ["certified factor", told.factor.toFixed(6)], ["basis", told.basis], ["root mean squared error", words.length(told.rmse_m)],
      ["Laplace at the smallest level", words.length(told.laplace_rmse_m)],
      ["level in use, on average", `${(100 * told.lowered_mean).toFixed(1)}% of asked`], ["where lowered most", `${(100 * told.lowered_least).toFixed(1)}%`]),
    h("p", { class: "note" }, `Keeps ${told.metric}: ${told.source}. ${told.numerics}. ${told.account}`),
    h("p", { class: "note" }, `Map SHA-256 ${told.digest.slice(0, 16)}…`),
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "plain", "data-test": "npz", onclick: () => void save("npz") }, "Download .npz"),
      h("button", { type: "button", class: "plain", "data-test": "tif", onclick: () => void save("tif") }, "Download GeoTIFF"),
      h("button", { type: "button", class: "plain", onclick: () => shell.go("place", { mechanism: job }) }, "Use it on one place")));
    if (!spot) fill(placeBox, empty("Click a place on the map to see the reports that it gives."));
    fit(told.bounds);
    layer = "used";
    layerButtons.select(layer);
    draw();
    changed();
    shell.announce(`Built and certified: at most ${told.factor.toFixed(4)} of the promise`);
  }
  async function save(kind: "npz" | "tif"): Promise<void> {
    try { await download("/api/map/file", { job, kind }, `privacy-map.${kind}`); } catch (error) { shell.fail(error as Error); }
  }
  function paint(values: ArrayLike<number>, rows: number, columns: number, bounds: [number, number, number, number], ramp: Ramp, share: (v: number) => number, name: string): void {
    const clear: Ramp = (t) => Number.isNaN(t) ? [0, 0, 0, 0] : ramp(t);
    const [west, south, east, north] = bounds;
    L.imageOverlay(picture(values as never, rows, columns, clear, share), [[south, west], [north, east]], { className: `cells layer-${name}`, interactive: false, alt: name }).addTo(pictures);
  }
  function draw(): void {
    pictures.clearLayers();
    marks.clearLayers();
    const shown = built ?? preview;
    if (!shown) { shell.legend(); return; }
    const { low_km: low, high_km: most, bounds } = shown.head;
    const scale = (v: number): number => Math.log(v / low) / Math.log(Math.max(most / low, 1.0001));
    if (layer === "levels" || !built) {
      const [rows, columns] = shown.shape["levels"] as [number, number];
      paint(shown.arrays["levels"]!, rows, columns, bounds, levelRamp, scale, "levels");
      levelLegend("Level asked for", low, most);
    } else if (layer === "used") {
      const [rows, columns] = built.shape["used"] as [number, number];
      paint(built.arrays["used"]!, rows, columns, bounds, levelRamp, scale, "used");
      levelLegend("Level in use", low, most);
    } else if (layer === "lowered") {
      const values = built.arrays["lowered"]!, [rows, columns] = built.shape["lowered"] as [number, number];
      let top = 0.01;
      for (const v of values) if (v > top) top = v;
      paint(values, rows, columns, bounds, lossRamp, (v) => v / top, "lowered");
      shell.legend(h("p", { class: "title" }, "Lowered, share of the level"), h("img", { src: rampPicture(lossRamp), alt: "" }),
        h("p", { class: "ends" }, h("span", {}, "0%"), h("span", {}, words.percent(top))));
    } else if (at) {
      const [rows, columns] = at.shape["chances"] as [number, number], top = at.head.largest;
      paint(at.arrays["chances"]!, rows, columns, at.head.bounds, heatRamp, (v) => Math.sqrt(v / top), "reports");
      shell.legend(h("p", { class: "title" }, "Reports from the marked place"), h("img", { src: rampPicture(heatRamp), alt: "" }),
        h("p", { class: "ends" }, h("span", {}, "0"), h("span", {}, words.percent(top / at.head.cell_km2 / 4)), h("span", {}, `${words.percent(top / at.head.cell_km2)} per km²`)),
        h("p", {}, h("span", { class: "key ring" }), "95% of them"), h("p", {}, h("span", { class: "key ask" }), "95% of Laplace at the smallest level"));
    } else shell.legend(h("p", {}, "Click a place on the map to see its reports."));
    if (spot && at && layer === "reports") {
      L.circleMarker([spot.lat, spot.lon], { radius: 6, color: colour("--card"), weight: 2, fillColor: colour("--pin"), fillOpacity: 1 }).addTo(marks);
      L.circle([spot.lat, spot.lon], { radius: at.head.most_m, color: colour("--cloud"), weight: 2, fill: false, interactive: false }).addTo(marks);
      L.circle([spot.lat, spot.lon], { radius: at.head.least.most_m, color: colour("--warn"), weight: 2, dashArray: "6 5", fill: false, interactive: false }).addTo(marks);
    }
  }
  function levelLegend(title: string, low: number, most: number): void {
    shell.legend(h("p", { class: "title" }, `${title}, per km`), h("img", { src: rampPicture(levelRamp), alt: "" }),
      h("p", { class: "ends" }, h("span", {}, `${low.toPrecision(2)} strict`), h("span", {}, `loose ${most.toPrecision(2)}`)));
  }
  function tellPlace(): void {
    if (!at) return;
    const told = at.head;
    const row = (name: string, one: Away): HTMLElement => h("tr", {}, h("td", {}, name), h("td", {}, words.length(one.mean_m)), h("td", {}, words.length(one.most_m)));
    const ours = row("this map", told);
    ours.className = "ours";
    fill(placeBox, facts(["level here", `${told.per_km.toPrecision(3)} per km`]),
      h("div", { class: "table-box" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, "mean error"), h("th", {}, "95% within"))),
        h("tbody", {}, ours, row("Laplace, level here", told.own), row("Laplace, smallest level", told.least)))),
      h("p", { class: "note" }, "One Laplace epsilon that keeps the map everywhere is the smallest level; the level here alone would not keep it next door."));
    shell.announce(`Mean error here ${words.length(told.mean_m)}`);
  }
  function changed(): void { shell.changed(); }

  showSource();
  showZones();
  fill(certificate, empty("Not built yet. Building solves for the report's law and certifies it."));
  fill(placeBox, empty("Build first, then click a place on the map to see the reports that it gives."));
  if (job) {  // a build of this server: still under way, or done
    resumeJob(job, {
      running: () => { asking.ask(request()); buildButton.disabled = true; watch(); },
      done: () => void show(),
      gone: ask,
    });
  } else ask();

  return {
    settings: () => ({ ...(file ? {} : { cells: String(cells) }), places, ...(job ? { job } : {}) }),
    explain,
    python: () => `import whereish as wh\nfrom whereish.data.philadelphia import philadelphia_map\n\n${file ? `levels = wh.map_from_grid("map.tif", slope=${slope}, offset=${offset}, per="km", density_unit="${unit}", nodata="nearest")` : `levels = philadelphia_map(${cells})`}\nmechanism = wh.EikonalMechanism.build(levels, places="${places}")\nprint(mechanism.guarantee, mechanism.account())\nmechanism.save("map.npz")\n\nlon, lat = ...  # your place, in degrees\nreport = mechanism.report(mechanism.map.plane.from_degrees([lon], [lat]))\n`,
    command: () => file
      ? `whereish build map FILE --formula "${slope}*d+${offset}"${high ? ` --high ${high}` : ""} --density-unit "${unit}"${cell ? ` --cell "${cell}"` : ""} --nodata nearest --places ${places} -o map.npz\nwhereish export map.npz map.tif\n`
      : `whereish build map philadelphia --cells ${cells} --places ${places} -o map.npz\nwhereish export map.npz map.tif\n`,
    repaint: () => { showZones(); draw(); },
    leave: () => { gone = true; watching?.stop(); removeEventListener("keydown", escape); shell.map.element.style.cursor = ""; },
  };

  function explain(): Explanation[] {
    const all: Explanation[] = [{
      title: "A privacy map", formula: "d(u,v) = min over paths from u to v of ∫ ε(x) |dx|\nP(S | u) ≤ e^d(u,v) · P(S | v)",
      text: "Every place has its own level ε: strict where few people live, loose in a crowd. The promise between two places is the cheapest way from one to the other.",
      source: "Koufogiannis, Pappas: Location-dependent privacy (CDC 2016); levels of Philadelphia as in the paper, densities from ZIP codes (US Census).",
    }];
    if (built) all.push({
      title: "The mechanism and its certificate", formula: "P(y | u) = w(y) · e^(−d(u,y)) / Z(u)",
      text: `The weights w are solved so that Z hardly varies; where it must, the level in use is lowered. The certificate checks every neighbouring pair and every report in exact arithmetic: at most ${built.head.factor.toFixed(6)} of the promise is used.`,
      source: "whereish, mechanisms/maps/eikonal.py; docs/maps.md.",
    });
    if (layer === "reports") all.push({
      title: "The reports of one place", formula: "95% radius: the least r with P(|y − u| ≤ r) ≥ 0.95",
      text: "The heat is the law of the report; constant noise that kept the same map would have to use its smallest level everywhere (dashed).", source: "As Figure 3 of the paper, live.",
    });
    return all;
  }
}

export const privacy: View = { id: "map", title: "Privacy map", words: "Strict where few people live, loose in a crowd: one certified mechanism.", mount };

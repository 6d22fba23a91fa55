// One Leaflet map on Canvas, its base map from this machine, and the layers that views draw.
import * as L from "leaflet";
import {
  CenteredTextSymbolizer, CircleSymbolizer, GroupSymbolizer, LineSymbolizer, OffsetTextSymbolizer, PolygonSymbolizer,
  leafletLayer,
} from "protomaps-leaflet";
import type { Numbers } from "./api";

export type Theme = "light" | "dark";
export type Rgb = [number, number, number];

const COLOURS = {
  light: { sea: "#dfe9ee", land: "#f7f6f2", border: "#a8a29a", state: "#d3cec5", county: "#e4e0d8", text: "#5c6166", halo: "#f7f6f2", dot: "#8a8f94" },
  dark: { sea: "#10181d", land: "#1b2429", border: "#5b666d", state: "#36424a", county: "#28333a", text: "#a3aeb5", halo: "#1b2429", dot: "#77828a" },
};

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function worldLayer(theme: Theme): L.Layer {
  const c = COLOURS[theme];
  const size = (z: number, f?: { props: Record<string, unknown> }): number =>
    Math.max(10, 15 - Number(f?.props["r"] ?? 6) + Math.min(2, Math.max(0, z - 6)));
  const town = (least: number, most: number) => ({
    dataLayer: "towns",
    symbolizer: new GroupSymbolizer([
      new CircleSymbolizer({ radius: 2, fill: c.dot, stroke: c.halo, width: 1 }),
      new OffsetTextSymbolizer({
        labelProps: ["n"], fill: c.text, stroke: c.halo, width: 2, offsetX: 5, offsetY: 3,
        fontFamily: FONT, fontWeight: 500, fontSize: size as never,
      }),
    ]),
    minzoom: least,
    filter: (_z: number, f: { props: Record<string, unknown> }) => Number(f.props["r"]) <= most,
  });
  const layer = leafletLayer({
    url: "/world.pmtiles", maxDataZoom: 6, attribution: "", noWrap: false, backgroundColor: c.sea,
    paintRules: [
      { dataLayer: "land", symbolizer: new PolygonSymbolizer({ fill: c.land }) },
      { dataLayer: "counties", symbolizer: new LineSymbolizer({ color: c.county, width: 1 }), minzoom: 7 },
      { dataLayer: "states", symbolizer: new LineSymbolizer({ color: c.state, width: 1 }), minzoom: 4 },
      { dataLayer: "borders", symbolizer: new LineSymbolizer({ color: c.border, width: 1 }) },
    ],
    labelRules: [town(2, 4), town(5, 5), town(7, 6), town(9, 7)],
  } as never) as unknown as L.Layer;
  return layer;
}

function cityLayer(theme: Theme): L.Layer {
  const c = COLOURS[theme];
  const road = theme === "light" ? "#ffffff" : "#38444c", casing = theme === "light" ? "#d9d4ca" : "#222c32";
  const kinds = (names: string[]) => (_z: number, f: { props: Record<string, unknown> }) =>
    names.includes(String(f.props["kind"] ?? f.props["pmap:kind"] ?? ""));
  const major = ["highway", "major_road", "medium_road"];
  const name = ["name:en", "name"];
  return leafletLayer({
    url: "/city.pmtiles", attribution: "streets © OpenStreetMap", backgroundColor: "rgba(0,0,0,0)",
    paintRules: [
      { dataLayer: "water", symbolizer: new PolygonSymbolizer({ fill: c.sea }) },
      { dataLayer: "roads", symbolizer: new LineSymbolizer({ color: casing, width: 1 }), minzoom: 13 },
      { dataLayer: "roads", symbolizer: new LineSymbolizer({ color: casing, width: 4 }), filter: kinds(major) },
      { dataLayer: "roads", symbolizer: new LineSymbolizer({ color: road, width: 2.5 }), filter: kinds(major) },
    ],
    labelRules: [{
      dataLayer: "places",
      symbolizer: new CenteredTextSymbolizer({ labelProps: name, fill: c.text, stroke: c.halo, width: 2, fontFamily: FONT, fontSize: 12 }),
    }],
  } as never) as unknown as L.Layer;
}

/** Many points on a canvas of their own; `xy` is longitude, latitude, longitude, ... */
export class PointsLayer extends L.Layer {
  private readonly canvas = document.createElement("canvas");
  private xy: ArrayLike<number> = [];
  private classes: ArrayLike<number> | null = null;
  constructor(private colours: string[], private size: number, private readonly alpha = 0.5) { super(); }

  set(xy: ArrayLike<number>, classes: ArrayLike<number> | null = null): void {
    this.xy = xy;
    this.classes = classes;
    this.draw();
  }

  /** How many points are inside the map: what a test asks. */
  drawn = 0;

  override onAdd(map: L.Map): this {
    this.canvas.className = "points-layer leaflet-zoom-hide";
    map.getPanes().overlayPane.append(this.canvas);
    map.on("moveend zoomend resize viewreset", this.draw, this);
    this.draw();
    return this;
  }

  override onRemove(map: L.Map): this {
    map.off("moveend zoomend resize viewreset", this.draw, this);
    this.canvas.remove();
    return this;
  }

  private draw(): void {
    const map = this._map as L.Map | null;
    if (!map) return;
    const size = map.getSize(), ratio = Math.min(window.devicePixelRatio || 1, 2);
    const origin = map.containerPointToLayerPoint([0, 0]);
    L.DomUtil.setPosition(this.canvas, origin);
    if (this.canvas.width !== size.x * ratio || this.canvas.height !== size.y * ratio) {
      this.canvas.width = size.x * ratio;
      this.canvas.height = size.y * ratio;
      this.canvas.style.width = `${size.x}px`;
      this.canvas.style.height = `${size.y}px`;
    }
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, size.x, size.y);
    context.globalAlpha = this.alpha;
    // Web Mercator by hand: a thousand times fewer objects than asking the map for each point.
    const scale = map.options.crs!.scale(map.getZoom());
    const corner = map.getPixelBounds().min!;
    const half = this.size / 2;
    let drawn = 0, last = -1;
    for (let i = 0; i + 1 < this.xy.length; i += 2) {
      const sine = Math.sin(this.xy[i + 1]! * Math.PI / 180);
      const x = (this.xy[i]! / 360 + 0.5) * scale - corner.x;
      const y = (0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI)) * scale - corner.y;
      if (!(x >= -4 && y >= -4 && x <= size.x + 4 && y <= size.y + 4)) continue;
      const kind = this.classes ? this.classes[i / 2]! : 0;
      if (kind !== last) { context.fillStyle = this.colours[kind] ?? this.colours[0]!; last = kind; }
      context.beginPath();
      context.arc(x, y, half, 0, 7);
      context.fill();
      drawn++;
    }
    this.drawn = drawn;
    this.canvas.dataset["drawn"] = String(drawn);
  }
}

export type Ramp = (t: number) => [number, number, number, number];

function between(stops: Rgb[], t: number): Rgb {
  const at = Math.min(Math.max(t, 0), 1) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
  const a = stops[low]!, b = stops[low + 1]!, s = at - low;
  return [0, 1, 2].map((i) => a[i]! + (b[i]! - a[i]!) * s) as Rgb;
}

/** Transparent for nothing, then through warm colours: probability. */
export const HEAT: Rgb[] = [[255, 214, 102], [245, 140, 60], [210, 60, 70], [120, 20, 100]];
export const heatRamp: Ramp = (t) => [...between(HEAT, t), t <= 0.004 ? 0 : Math.min(215, 40 + 260 * t)];

/** From strict (violet) to loose (yellow): a privacy level. */
export const LEVEL: Rgb[] = [[68, 20, 100], [52, 82, 140], [32, 130, 132], [100, 190, 90], [240, 225, 70]];
export const levelRamp: Ramp = (t) => [...between(LEVEL, t), 150];

/** Where something was lowered, the stronger the more. */
export const LOSS: Rgb[] = [[255, 225, 200], [235, 130, 90], [165, 30, 50]];
export const lossRamp: Ramp = (t) => [...between(LOSS, t), t < 0.02 ? 0 : 170];

/** A picture of rows x columns numbers, the first row in the south; `share` maps a number to 0..1. */
export function picture(values: Numbers | number[], rows: number, columns: number, ramp: Ramp, share: (value: number) => number): string {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      image.data.set(ramp(share(values[row * columns + column]!)), 4 * ((rows - 1 - row) * columns + column));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** A legend's bar of colours. */
export function rampPicture(ramp: Ramp): string {
  return picture(Float64Array.from({ length: 64 }, (_, i) => i / 63), 1, 64, ramp, (t) => t);
}

export class MapShell {
  readonly map: L.Map;
  readonly layers = L.layerGroup();
  private base: L.Layer[] = [];

  constructor(readonly element: HTMLElement, private theme: Theme, private readonly city: boolean) {
    this.map = L.map(element, {
      preferCanvas: true, zoomControl: false, attributionControl: false, worldCopyJump: true,
      minZoom: 2, maxZoom: 18, zoomAnimation: false, fadeAnimation: false, markerZoomAnimation: false,
    });
    L.control.zoom({ position: "topright" }).addTo(this.map);
    L.control.scale({ imperial: false, position: "topright" }).addTo(this.map);
    L.control.attribution({ prefix: false, position: "bottomright" })
      .addAttribution("Natural Earth · GeoNames (CC BY 4.0)").addTo(this.map);
    this.map.setView([39.9526, -75.1635], 13);
    this.layers.addTo(this.map);
    this.paint(theme);
    new ResizeObserver(() => this.map.invalidateSize({ animate: false })).observe(element);
  }

  paint(theme: Theme): void {
    this.theme = theme;
    for (const old of this.base) old.remove();
    this.base = [worldLayer(theme), ...(this.city ? [cityLayer(theme)] : [])];
    for (const one of this.base) one.addTo(this.map);
    this.element.style.backgroundColor = COLOURS[theme].sea;
  }

  get isDark(): boolean { return this.theme === "dark"; }

  clear(): void {
    this.layers.clearLayers();
    this.map.off("click");
    this.map.off("mousemove");
  }
}

// The pin: dragged, moved by arrow keys, and put back by undo.  It is in memory only.
import * as L from "leaflet";
import { svg } from "./dom";

export interface PlaceDegrees { lon: number; lat: number }

function drawing(): HTMLElement {
  const box = document.createElement("div");
  box.append(svg("svg", { viewBox: "0 0 28 38", width: 28, height: 38, "aria-hidden": "true" },
    svg("path", { class: "pin-shape", d: "M14 1C6.8 1 1 6.8 1 14c0 9.5 13 23 13 23s13-13.5 13-23C27 6.8 21.2 1 14 1z" }),
    svg("circle", { class: "pin-dot", cx: 14, cy: 14, r: 5 })));
  return box;
}

export class Pin {
  readonly marker: L.Marker;
  private past: PlaceDegrees[] = [];
  private current: PlaceDegrees;

  constructor(private readonly map: L.Map, at: PlaceDegrees,
    private readonly moved: (place: PlaceDegrees, settled: boolean) => void) {
    this.current = at;
    this.marker = L.marker([at.lat, at.lon], {
      draggable: true, keyboard: true, alt: "Your place; arrow keys move it", autoPan: true, zIndexOffset: 1000,
      icon: L.divIcon({ html: drawing(), className: "pin", iconSize: [28, 38], iconAnchor: [14, 37] }),
    });
    let start = at;
    this.marker.on("dragstart", () => { start = this.current; });
    this.marker.on("drag", () => this.set(this.read(), false));
    this.marker.on("dragend", () => { this.past.push(start); this.set(this.read(), true); });
    this.marker.on("add", () => {
      const element = this.marker.getElement()!;
      element.setAttribute("role", "button");
      element.setAttribute("aria-label", "Your place. Arrow keys move it; hold shift for larger steps.");
      element.addEventListener("keydown", (event) => this.key(event));
    });
  }

  get place(): PlaceDegrees { return this.current; }
  get canUndo(): boolean { return this.past.length > 0; }

  put(place: PlaceDegrees): void {
    this.past.push(this.current);
    this.marker.setLatLng([place.lat, place.lon]);
    this.set(place, true);
  }

  undo(): void {
    const back = this.past.pop();
    if (!back) return;
    this.marker.setLatLng([back.lat, back.lon]);
    if (!this.map.getBounds().contains([back.lat, back.lon])) this.map.panTo([back.lat, back.lon], { animate: false });
    this.set(back, true);
  }

  private read(): PlaceDegrees {
    const { lat, lng } = this.marker.getLatLng().wrap();
    return { lon: lng, lat: Math.max(-85, Math.min(85, lat)) };
  }

  private set(place: PlaceDegrees, settled: boolean): void {
    this.current = place;
    this.moved(place, settled);
  }

  private key(event: KeyboardEvent): void {
    const way: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    };
    const step = way[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const pixels = event.shiftKey ? 40 : 8;
    const at = this.map.latLngToContainerPoint(this.marker.getLatLng()).add([step[0] * pixels, step[1] * pixels]);
    const to = this.map.containerPointToLatLng(at).wrap();
    if (!this.map.getBounds().contains(to)) this.map.panTo(to, { animate: false });
    this.put({ lon: to.lng, lat: Math.max(-85, Math.min(85, to.lat)) });
  }
}

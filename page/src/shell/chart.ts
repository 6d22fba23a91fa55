// Small charts as SVG, in the page's colours.
import { svg } from "./dom";

const W = 370, H = 150, L = 46, B = 24, T = 8;

function scale(low: number, high: number, from: number, to: number): (v: number) => number {
  const span = high - low || 1;
  return (v) => from + (v - low) / span * (to - from);
}

/** Two lines over a common x, such as bounds over time. */
export function lines(label: string, x: number[], a: number[], b: number[], xWords: string, say: (v: number) => string): SVGElement {
  const finite = [...a, ...b].filter(Number.isFinite);
  const low = Math.min(...finite), high = Math.max(...finite);
  const px = scale(Math.min(...x), Math.max(...x), L, W - 8), py = scale(low, high, H - B, T);
  const path = (values: number[]): string => values.map((v, i) => Number.isFinite(v) ? `${px(x[i]!).toFixed(1)},${py(v).toFixed(1)}` : "").filter(Boolean).join(" ");
  return svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    svg("line", { class: "axis", x1: L, y1: H - B, x2: W - 8, y2: H - B }),
    svg("line", { class: "axis", x1: L, y1: T, x2: L, y2: H - B }),
    svg("polyline", { class: "a", points: path(a), "data-count": a.length }),
    svg("polyline", { class: "b", points: path(b), "data-count": b.length }),
    svg("text", { x: L - 5, y: T + 8, "text-anchor": "end" }, say(high)),
    svg("text", { x: L - 5, y: H - B, "text-anchor": "end" }, say(low)),
    svg("text", { x: W - 8, y: H - 7, "text-anchor": "end" }, xWords));
}

/** Two histograms over the same bins. */
export function bars(label: string, edges: number[], a: number[], b: number[], xWords: string, say: (v: number) => string): SVGElement {
  const high = Math.max(...a, ...b, 1e-12), n = a.length;
  const px = scale(0, n, L, W - 8), py = scale(0, high, H - B, T), wide = (W - 8 - L) / n;
  const draw = (values: number[], kind: string, shift: number): SVGElement[] => values.map((v, i) =>
    svg("rect", { class: kind, x: (px(i) + shift * wide).toFixed(1), y: py(v).toFixed(1), width: (wide * 0.46).toFixed(1), height: Math.max(0, H - B - py(v)).toFixed(1) }));
  return svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label },
    ...draw(a, "bar-a", 0.02), ...draw(b, "bar-b", 0.5),
    svg("line", { class: "axis", x1: L, y1: H - B, x2: W - 8, y2: H - B }),
    svg("text", { x: L - 5, y: T + 8, "text-anchor": "end" }, `${Math.round(100 * high)}%`),
    svg("text", { x: L, y: H - 7 }, say(edges[0]!)),
    svg("text", { x: W - 8, y: H - 7, "text-anchor": "end" }, `${say(edges[n]!)} ${xWords}`));
}

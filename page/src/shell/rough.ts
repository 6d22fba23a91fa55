// How rough, in words: a slider, and the two numbers of its promise.
import { field, h } from "./dom";
import * as words from "./words";

const LEAST = Math.log(20), MOST = Math.log(50_000);

export interface Rough {
  readonly elements: Node[];
  /** epsilon per metre. */
  epsilon(): number;
  /** The promise as an expression of the library: ln(4)/200 m. */
  expression(): string;
  settings(): Record<string, string>;
}

/** The controls; `changed` is told whether the slider has come to rest. */
export function rough(given: Record<string, string>, otherwise: { apart: number; factor: number }, changed: (settled: boolean) => void): Rough {
  const read = (name: string, value: number): number => Number(given[name]) > 0 ? Number(given[name]) : value;
  let apart = read("apart", otherwise.apart), times = Math.max(1.01, read("factor", otherwise.factor));
  const epsilon = (): number => Math.log(times) / apart;
  const said = h("p", { class: "big", "data-test": "rough" }), promise = h("p", { class: "hint", "data-test": "promise" });
  const slider = h("input", { type: "range", min: LEAST, max: MOST, step: 0.01, "aria-label": "How rough reports are" });
  const apartInput = h("input", { type: "number", min: 1, max: 1e6, step: "any" });
  const timesInput = h("input", { type: "number", min: 1.01, max: 1e9, step: "any" });
  const round = (x: number): number => Number(x.toPrecision(6));
  function sync(): void {
    said.textContent = `About ${words.about(2 / epsilon())} rough`;
    promise.textContent = `Two places ${words.length(apart)} apart: at most a factor ${words.factor(times)}. ε = ${words.epsilon(epsilon())}.`;
    slider.value = String(Math.log(2 / epsilon()));
    slider.setAttribute("aria-valuetext", said.textContent);
    apartInput.value = String(Number(apart.toPrecision(4)));
    timesInput.value = String(Number(times.toPrecision(4)));
  }
  slider.addEventListener("input", () => {
    const perM = 2 / Math.exp(Number(slider.value));
    times = Math.exp(perM * apart);
    if (!(times >= 1.02 && times < 1e6)) { times = 4; apart = Math.max(1, Math.round(Math.log(4) / perM)); }
    sync();
    changed(false);
  });
  slider.addEventListener("change", () => changed(true));
  apartInput.addEventListener("change", () => { apart = Math.max(1, Number(apartInput.value) || apart); sync(); changed(true); });
  timesInput.addEventListener("change", () => { times = Math.max(1.01, Number(timesInput.value) || times); sync(); changed(true); });
  sync();
  return {
    elements: [said, slider, promise, h("div", { class: "row" }, field("Places this far apart (m)", apartInput), field("look alike within a factor", timesInput))],
    epsilon,
    expression: () => `ln(${round(times)})/${round(apart)} m`,
    settings: () => ({ apart: String(round(apart)), factor: String(round(times)) }),
  };
}

// Elements without markup: text from data is always text.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

/** An element; `on...` properties are listeners, the others attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, props: Props = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child): child is Node | string => Boolean(child)));
  return made;
}

/** An SVG element. */
export function svg(tag: string, props: Record<string, string | number> = {}, ...children: Child[]): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) made.setAttribute(name, String(value));
  made.append(...children.filter((child): child is Node | string => Boolean(child)));
  return made;
}

/** Put new children into an element. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => Boolean(child)));
}

let counter = 0;
/** A name for a label and its input. */
export const fresh = (): string => `w${++counter}`;

/** A section of the panel. */
export function section(title: string, ...children: Child[]): HTMLElement {
  return h("section", { class: "card" }, h("h2", {}, title), ...children);
}

/** A labelled input, with words below it. */
export function field(label: string, input: HTMLElement, hint?: HTMLElement | string): HTMLElement {
  if (!input.id) input.id = fresh();
  const below = hint === undefined ? null : typeof hint === "string" ? h("p", { class: "hint" }, hint) : hint;
  return h("div", { class: "field" }, h("label", { for: input.id }, label), input, below);
}

/** A drop-down list of values and their words. */
export function choice(options: [string, string][], value: string, onchange: (value: string) => void): HTMLSelectElement {
  const made = h("select", { onchange: () => onchange(made.value) },
    ...options.map(([name, words]) => h("option", { value: name, selected: name === value }, words)));
  return made;
}

/** One of a few, side by side. */
export function segments(
  label: string, options: [string, string][], value: string, onchange: (value: string) => void,
): HTMLElement & { select(value: string): void } {
  const buttons = options.map(([name, words]) => h("button", {
    type: "button", "aria-pressed": name === value ? "true" : "false", "data-value": name,
    onclick: () => { select(name); onchange(name); },
  }, words));
  const select = (name: string): void => {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset["value"] === name));
  };
  return Object.assign(h("div", { class: "segments", role: "group", "aria-label": label }, ...buttons), { select });
}

/** Name and value, name and value. */
export function facts(...rows: ([string, string | Node] | null)[]): HTMLElement {
  return h("dl", { class: "facts" }, ...rows.flatMap((row) =>
    row === null ? [] : [h("dt", {}, row[0]), h("dd", {}, row[1])]));
}

/** What to show where there is nothing yet. */
export const empty = (text: string): HTMLElement => h("p", { class: "empty" }, text);

/** Where files are dropped or chosen. */
export function dropZone(words: string, accept: string, take: (file: File) => void): HTMLElement {
  const input = h("input", {
    type: "file", accept, class: "unseen", id: fresh(),
    onchange: () => { const file = input.files?.[0]; if (file) take(file); input.value = ""; },
  });
  const zone = h("label", { class: "drop", for: input.id }, words, input);
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const file = event.dataTransfer?.files[0];
    if (file) take(file);
  });
  return zone;
}

/** A colour of the style sheet, as it is now. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

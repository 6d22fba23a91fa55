// The shell of the page: header, views, panel, map, legend, drawer; then the session and the first view.
import "leaflet/dist/leaflet.css";
import "./style.css";
import { Refused, post } from "./shell/api";
import { fill, h } from "./shell/dom";
import { MapShell, type Theme } from "./shell/map";
import type { Mounted, Shell, View } from "./shell/view";
import { VIEWS } from "./views";

const root = document.getElementById("app")!;

function hashSettings(): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

async function open(): Promise<{ version: string; city: boolean }> {
  const secret = hashSettings()["session"] ?? "";
  const told = await post<{ version: string; city: boolean }>("/api/session", { secret });
  if (secret) {  // the secret leaves the address bar; the cookie has it now
    const rest = new URLSearchParams(location.hash.slice(1));
    rest.delete("session");
    history.replaceState(null, "", rest.size ? `#${rest}` : location.pathname);
  }
  return told;
}

function themeNow(): Theme {
  const chosen = localStorage.getItem("whereish-theme");
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function start(told: { version: string; city: boolean }): void {
  const status = h("p", { class: "unseen", role: "status", "aria-live": "polite" });
  const alert = h("div", { class: "alert", role: "alert", hidden: true });
  const panel = h("div", { class: "panel-body" });
  const mapElement = h("div", { class: "map", role: "region", "aria-label": "Map" });
  const legend = h("div", { class: "legend", hidden: true, "data-test": "legend" });
  const drawer = h("aside", { class: "drawer", hidden: true, "aria-label": "Explanation" });
  const title = h("h1", {});
  const lead = h("p", { class: "lead" });

  const tabs = new Map<string, HTMLButtonElement>();
  const nav = h("nav", { class: "views", "aria-label": "Views" }, ...VIEWS.map((view) => {
    const tab = h("button", { type: "button", onclick: () => go(view.id) }, view.title);
    tabs.set(view.id, tab);
    return tab;
  }));
  let theme = themeNow();
  document.documentElement.dataset["theme"] = theme;
  const themeButton = h("button", {
    type: "button", class: "quiet", "aria-label": "Switch between light and dark", title: "Light or dark",
    onclick: () => {
      theme = theme === "light" ? "dark" : "light";
      localStorage.setItem("whereish-theme", theme);
      document.documentElement.dataset["theme"] = theme;
      shellMap.paint(theme);
      mounted?.repaint?.();
    },
  }, "◐");
  const actions = h("div", { class: "actions", role: "group", "aria-label": "Take it with you" },
    button("Explain", "explain", () => toggleDrawer()),
    button("Copy as Python", "copy-python", (made) => void copy(made, mounted?.python() ?? "")),
    button("Copy as command", "copy-command", (made) => void copy(made, mounted?.command() ?? "")),
    button("Copy link", "copy-link", (made) => void copy(made, link())));

  fill(root,
    h("a", { class: "skip", href: "#panel", onclick: (event: Event) => { event.preventDefault(); panel.focus(); } }, "Skip to the controls"),
    h("header", { class: "top" },
      h("div", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 26, height: 26 }), h("span", {}, "whereish"), h("small", {}, told.version)),
      nav, themeButton),
    h("main", {},
      h("section", { class: "panel", "aria-label": "Controls" }, title, lead, actions, alert, panel),
      h("div", { class: "stage" }, mapElement, legend, drawer)),
    status);
  panel.id = "panel";
  panel.tabIndex = -1;

  const shellMap = new MapShell(mapElement, theme, told.city);
  let mounted: Mounted | null = null;
  let current: View | null = null;

  const shell: Shell = {
    panel, map: shellMap,
    announce: (text) => { status.textContent = text; },
    fail: (error) => {
      alert.hidden = error === null;
      alert.textContent = error === null ? "" : typeof error === "string" ? error : error.message;
      if (error instanceof Refused && error.status === 401) closed();
    },
    legend: (...children) => { legend.hidden = children.length === 0; fill(legend, ...children); },
    changed: () => {
      if (!mounted || !current) return;
      history.replaceState(null, "", `#${address()}`);
      if (!drawer.hidden) showDrawer();
    },
    go: (view, settings) => go(view, settings),
  };

  function address(): string {
    return new URLSearchParams({ view: current?.id ?? "place", ...mounted?.settings() }).toString();
  }
  function link(): string {
    return `${location.origin}/#${address()}`;
  }
  function go(id: string, settings: Record<string, string> = {}): void {
    const view = VIEWS.find((one) => one.id === id) ?? VIEWS[0]!;
    mounted?.leave();
    mounted = null;
    shellMap.clear();
    shell.legend();
    shell.fail(null);
    fill(panel);
    for (const [name, tab] of tabs) {
      if (name === view.id) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    tabs.get(view.id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    current = view;
    title.textContent = view.title;
    lead.textContent = view.words;
    document.title = `${view.title} · whereish workbench`;
    root.dataset["view"] = view.id;
    mounted = view.mount(shell, settings);
    shell.changed();
    performance.mark(`view-${view.id}`);
  }
  function showDrawer(): void {
    fill(drawer,
      h("div", { class: "drawer-head" }, h("h2", {}, "What is on screen"),
        h("button", { type: "button", class: "quiet", "aria-label": "Close the explanation", onclick: toggleDrawer }, "✕")),
      ...(mounted?.explain() ?? []).map((one) => h("article", {},
        h("h3", {}, one.title), h("p", { class: "formula" }, one.formula), h("p", {}, one.text),
        h("p", { class: "source" }, one.source))),
      h("p", { class: "source" }, "Nothing on this page leaves the machine. ",
        h("a", { href: "LICENSES.txt", target: "_blank", rel: "noopener" }, "Licences and sources of the page")));
  }
  function toggleDrawer(): void {
    drawer.hidden = !drawer.hidden;
    actions.querySelector("[data-test=explain]")?.setAttribute("aria-expanded", String(!drawer.hidden));
    if (!drawer.hidden) {
      showDrawer();
      drawer.querySelector("button")?.focus();
    }
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape" && !drawer.hidden) toggleDrawer(); });
  addEventListener("hashchange", () => {
    const { view, ...settings } = hashSettings();
    if (view !== undefined && `#${address()}` !== location.hash) go(view, settings);
  });

  const { view, ...settings } = hashSettings();
  go(view ?? VIEWS[0]!.id, settings);

  function button(words: string, test: string, act: (made: HTMLButtonElement) => void): HTMLButtonElement {
    const made: HTMLButtonElement = h("button", { type: "button", "data-test": test, onclick: () => act(made) }, words);
    return made;
  }
  async function copy(made: HTMLButtonElement, text: string): Promise<void> {
    const words = made.textContent ?? "";
    made.dataset["copied"] = text;
    try {
      await navigator.clipboard.writeText(text);
      made.textContent = "Copied";
      shell.announce("Copied");
    } catch {  // no clipboard here: the text is shown to be selected
      const area = h("textarea", { readonly: true, rows: 8, "aria-label": words });
      area.value = text;
      fill(drawer, h("div", { class: "drawer-head" }, h("h2", {}, words),
        h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: toggleDrawer }, "✕")), area);
      drawer.hidden = false;
      area.select();
    }
    setTimeout(() => { made.textContent = words; }, 1200);
  }
}

function closed(): void {
  fill(root, h("main", { class: "closed" },
    h("h1", {}, "whereish workbench"),
    h("p", { role: "alert" }, "This page is open to whoever started it only. Use the address that "
      , h("code", {}, "whereish workbench"), " printed in the terminal.")));
}

open().then(start, (error: Error) => {
  if (error instanceof Refused && error.status === 401) closed();
  else fill(root, h("main", { class: "closed" }, h("h1", {}, "whereish workbench"), h("p", { role: "alert" }, error.message)));
});

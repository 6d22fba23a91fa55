// A job in the panel: a bar or a sentence while it runs, a button that stops it, and how it ended.
import { type JobStatus, follow, post } from "./api";
import { fill, h } from "./dom";
import type { Shell } from "./view";

export interface Watching { stop(): void }

/** Follow a job; `told` draws its progress, `done` takes its result. */
export function watchJob<P>(
  shell: Shell, box: HTMLElement, id: string,
  told: (all: P[]) => Node[], done: (status: JobStatus<P>) => void, ended: () => void = () => undefined,
): Watching {
  let left = false;
  const body = h("div", {}), clock = h("span", { class: "hint" });
  const stop = h("button", { type: "button", class: "plain", "data-test": "stop", onclick: () => void post("/api/job/stop", { id }).catch(shell.fail) }, "Stop");
  fill(box, h("progress", { "aria-label": "Build under way" }), body, h("div", { class: "buttons" }, stop, clock));
  follow<P>(id, (status, all) => {
    clock.textContent = `${status.seconds.toFixed(1)} s`;
    fill(body, ...told(all));
  }, () => left).then((status) => {
    if (!status || left) return;
    ended();
    if (status.state === "done") done(status);
    else {
      fill(box, h("p", { class: "empty" }, status.state === "stopped" ? "Stopped; nothing was kept." : "The build failed."));
      if (status.state === "failed") shell.fail(status.error);
    }
  }, (error: Error) => { if (!left) { ended(); fill(box); shell.fail(error); } });
  return { stop: () => { left = true; } };
}

/** A build that a link or a reload names: still under way, done, or not known any more. */
export function resumeJob(id: string, ways: { running: () => void; done: () => void; gone: () => void }): void {
  void post<{ state: string }>("/api/job", { id, since: 0 }).then((status) => {
    if (status.state === "running") ways.running();
    else if (status.state === "done") ways.done();
    else ways.gone();
  }, ways.gone);
}

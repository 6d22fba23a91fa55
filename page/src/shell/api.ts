// POST in, JSON or binary out; one request in flight for each purpose, and the newest wins.

export class Refused extends Error {
  constructor(readonly status: number, message: string, readonly field = "") { super(message); }
}

const HEADERS = { "content-type": "application/json", "x-whereish": "workbench" };

async function refusal(response: Response): Promise<Refused> {
  try {
    const said = await response.json() as { title?: string; detail?: string; field?: string };
    return new Refused(response.status, said.detail || said.title || "refused", said.field ?? "");
  } catch {
    return new Refused(response.status, `the workbench answered ${response.status}`);
  }
}

async function ask(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, {
      method: "POST", headers: HEADERS, body: JSON.stringify(body), cache: "no-store", ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "the workbench does not answer: is the command still running in the terminal?");
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

/** JSON for JSON. */
export async function post<T>(path: string, body: unknown = {}, signal?: AbortSignal): Promise<T> {
  return await (await ask(path, body, signal)).json() as T;
}

export type Numbers = Float64Array | Float32Array | Uint8Array | Int32Array;
export interface Answer<T> { head: T; arrays: Record<string, Numbers>; shape: Record<string, number[]> }

/** A head and arrays for JSON. */
export async function postBinary<T>(path: string, body: unknown, signal?: AbortSignal): Promise<Answer<T>> {
  const buffer = await (await ask(path, body, signal)).arrayBuffer();
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size))) as
    T & { arrays: { name: string; type: "f8" | "f4" | "u1" | "i4"; shape: number[]; offset: number }[] };
  const kinds = { f8: Float64Array, f4: Float32Array, u1: Uint8Array, i4: Int32Array };
  const arrays: Record<string, Numbers> = {}, shape: Record<string, number[]> = {};
  for (const one of head.arrays) {
    const length = one.shape.reduce((a, b) => a * b, 1);
    arrays[one.name] = new kinds[one.type](buffer, 4 + size + one.offset, length);
    shape[one.name] = one.shape;
  }
  return { head, arrays, shape };
}

/** One request at a time; what is asked meanwhile waits, and only the latest of it is sent. */
export class Latest<A, T> {
  private busy = false;
  private next: A | undefined;
  constructor(private readonly send: (asked: A) => Promise<T>,
    private readonly done: (answer: T, asked: A) => void,
    private readonly failed: (error: Error) => void) {}

  ask(asked: A): void {
    if (this.busy) { this.next = asked; return; }
    this.busy = true;
    void this.send(asked).then((answer) => this.done(answer, asked), (error: Error) => this.failed(error)).finally(() => {
      this.busy = false;
      const next = this.next;
      this.next = undefined;
      if (next !== undefined) this.ask(next);
    });
  }

  /** Forget what waits. */
  drop(): void { this.next = undefined; }
}

export interface Uploaded { id: string; name: string; bytes: number }

/** Send a file; its name is for people only. */
export async function upload(file: File): Promise<Uploaded> {
  let response: Response;
  try {
    response = await fetch("/api/uploads", {
      method: "POST", body: file, cache: "no-store",
      headers: { "content-type": "application/octet-stream", "x-whereish": "workbench", "x-filename": encodeURIComponent(file.name) },
    });
  } catch {
    throw new Refused(0, "the upload was refused or broken off: is the file too large, or has the workbench ended?");
  }
  if (!response.ok) throw await refusal(response);
  return await response.json() as Uploaded;
}

/** Fetch a file that the workbench made, and hand it to the browser's downloads. */
export async function download(path: string, body: unknown, name: string): Promise<void> {
  const blob = await (await ask(path, body)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export interface JobStatus<P> {
  id: string; kind: string; title: string; state: "running" | "done" | "failed" | "stopped";
  error: string; seconds: number; entries: number; progress: P[];
}

/** Poll a job until it ends; `told` is called at every step with all of its progress so far. */
export async function follow<P>(
  id: string, told: (status: JobStatus<P>, all: P[]) => void, left: () => boolean,
): Promise<JobStatus<P> | null> {
  const all: P[] = [];
  for (let wait = 100; ; wait = Math.min(500, wait * 1.3)) {
    if (left()) return null;
    const status = await post<JobStatus<P>>("/api/job", { id, since: all.length });
    all.push(...status.progress);
    told(status, all);
    if (status.state !== "running") return status;
    await new Promise((go) => setTimeout(go, wait));
  }
}

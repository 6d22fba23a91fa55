// What a view is: it fills the panel, draws on the map, and can be written down without a place.
import type { MapShell } from "./map";

export interface Explanation { title: string; formula: string; text: string; source: string }

export interface Shell {
  readonly panel: HTMLElement;
  readonly map: MapShell;
  /** Say it to screen readers. */
  announce(text: string): void;
  /** Show an error in the page; null takes it away. */
  fail(error: Error | string | null): void;
  /** Put a legend on the map; nothing takes it away. */
  legend(...children: (Node | string)[]): void;
  /** The settings changed: the address and the drawer follow. */
  changed(): void;
  /** Go to another view. */
  go(view: string, settings?: Record<string, string>): void;
}

export interface Mounted {
  /** All settings that a link restores: never a place, nor where the map is. */
  settings(): Record<string, string>;
  explain(): Explanation[];
  python(): string;
  command(): string;
  leave(): void;
  /** Colours changed. */
  repaint?(): void;
}

export interface View {
  readonly id: string;
  readonly title: string;
  readonly words: string;
  mount(shell: Shell, settings: Record<string, string>): Mounted;
}

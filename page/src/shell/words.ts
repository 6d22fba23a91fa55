// Numbers as people say them.

/** A length with its unit, to about three digits. */
export function length(m: number): string {
  if (!Number.isFinite(m)) return "unbounded";
  if (m >= 99_500) return `${Math.round(m / 1000).toLocaleString("en")} km`;
  if (m >= 9_950) return `${(m / 1000).toFixed(1)} km`;
  if (m >= 995) return `${(m / 1000).toFixed(2)} km`;
  if (m >= 99.5) return `${Math.round(m)} m`;
  return `${m.toPrecision(m >= 10 ? 2 : 1)} m`;
}

/** A round length, for sentences. */
export function about(m: number): string {
  const ten = 10 ** Math.floor(Math.log10(m));
  const lead = m / ten;
  const step = lead < 2 ? 0.1 : lead < 5 ? 0.2 : 0.5;
  return length(Math.round(lead / step) * step * ten);
}

/** A factor. */
export function factor(x: number): string {
  if (x >= 1e6) return x.toExponential(1).replace("e+", "·10^");
  if (x >= 100) return Math.round(x).toLocaleString("en");
  return x >= 10 ? x.toFixed(1) : x.toFixed(2).replace(/\.?0+$/, "");
}

/** A share. */
export function percent(x: number): string {
  const p = 100 * x;
  return p >= 9.95 ? `${Math.round(p)}%` : p >= 0.995 ? `${p.toFixed(1)}%` : p >= 0.01 ? `${p.toFixed(2)}%` : p > 0 ? "<0.01%" : "0%";
}

/** An area. */
export function area(km2: number): string {
  return km2 >= 100 ? `${Math.round(km2).toLocaleString("en")} km²` : km2 >= 1 ? `${km2.toFixed(1)} km²` : `${Math.round(km2 * 100)} ha`;
}

/** epsilon with a unit. */
export function epsilon(perM: number): string {
  const perKm = perM * 1000;
  return perKm >= 0.1 ? `${Number(perKm.toPrecision(3))} per km` : `${Number((perKm * 1000).toPrecision(3))} per 1,000 km`;
}

/** A size in bytes. */
export function bytes(n: number): string {
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} MB` : n >= 1e3 ? `${Math.round(n / 1e3)} kB` : `${n} bytes`;
}

/** Whole numbers with commas. */
export const count = (n: number): string => n.toLocaleString("en");

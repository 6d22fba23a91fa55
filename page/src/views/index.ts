// The views, in the order of their tabs.
import type { View } from "../shell/view";
import { audit } from "./audit";
import { data } from "./data";
import { optimal } from "./optimal";
import { place } from "./place";
import { privacy } from "./privacy";

export const VIEWS: View[] = [place, privacy, optimal, data, audit];

// The views, in the order of their tabs.
import type { View } from "../shell/view";
import { data } from "./data";
import { place } from "./place";
import { privacy } from "./privacy";

export const VIEWS: View[] = [place, privacy, data];

// The views, in the order of their tabs.
import type { View } from "../shell/view";
import { place } from "./place";

export const VIEWS: View[] = [place];

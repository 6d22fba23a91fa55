#!/bin/sh
# Hadoop's name node and data node, for the stress of outputs on HDFS:
#
#   scripts/hdfs-jars.sh FOLDER     makes FOLDER/jars
#
# pyspark 3.0.1 was built for Hadoop 2.7 and still ships its server classes, so its source
# distribution brings a real HDFS with nothing but pip.  A second run does nothing.
#
# There is no wheel of pyspark 3.0.1, and pip asks the setup.py of a source distribution for
# its metadata even if it only downloads: that code runs here, after its SHA-256 was checked.
set -eu
. "$(dirname "$0")/own-folder.sh"

[ -f "$folder/jars/.ready" ] && exit 0
[ ! -e "$folder/jars" ] || give_up "$folder/jars is there and is not ours: move it away"

start_work
cat >"$work/requirements.txt" <<'PINNED'
pyspark==3.0.1 --hash=sha256:38b485d3634a86c9a2923c39c8f08f003fdd0e0a3d7f07114b2fb4392ce60479
PINNED
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps \
  --no-binary pyspark --require-hashes -d "$work/archive" -r "$work/requirements.txt" ||
  give_up "pyspark 3.0.1 cannot be fetched"
mkdir "$work/jars"
tar -xzf "$work"/archive/pyspark-3.0.1.tar.gz -C "$work/jars" --strip-components=3 \
  --wildcards '*/deps/jars/*.jar'
ls "$work"/jars/hadoop-hdfs-2.*.jar >/dev/null
touch "$work/jars/.ready"
finish_work jars jars

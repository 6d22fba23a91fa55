#!/bin/sh
# Give the system's `ogrinfo` the Parquet driver that Debian leaves out:
#
#   scripts/ogrinfo-parquet.sh FOLDER     then  GDAL_DRIVER_PATH=FOLDER/drivers ogrinfo ...
#
# GDAL's own driver, from the source package of the very GDAL that is installed, is compiled
# as a plugin against the Arrow library and headers in a pyarrow wheel.  Nothing is changed
# outside FOLDER, save that gdal-bin is installed where it is missing and this is root.  A
# second run does nothing.  Where it cannot be done it says why, and ends with status 1.
set -eu

give_up() {
  echo "ogrinfo with Parquet: $1" >&2
  exit 1
}

[ $# -eq 1 ] || give_up "give one folder to build in"
mkdir -p "$1"
folder=$(cd "$1" && pwd)
[ -f "$folder/drivers/ogr_Parquet.so" ] && exit 0

if ! command -v ogrinfo >/dev/null 2>&1; then
  { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; } ||
    give_up "gdal-bin is not installed"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gdal-bin
fi
mkdir -p "$folder/drivers"
if ogrinfo --formats | grep -q '^ *Parquet '; then
  exit 0 # no plugin is needed
fi
command -v apt-get >/dev/null 2>&1 || give_up "GDAL's source is fetched by apt-get, which is not here"
command -v g++ >/dev/null 2>&1 || give_up "g++ is not installed"

# An Arrow of the driver's time, in a wheel with the C++ ABI of Debian's GDAL.
case "$(ogrinfo --version)" in
  "GDAL 3.6."*) arrow=13.0.0 ;;
  *) give_up "no fitting Arrow is known here for $(ogrinfo --version)" ;;
esac

# The system's package archives, with their sources, in lists of our own.
. /etc/os-release
apt="$folder/apt"
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
apt-get update --print-uris |
  sed -n "s#^'\(.*\)/dists/\($VERSION_CODENAME[^/]*\)/InRelease'.*#deb \1 \2 main\ndeb-src \1 \2 main#p" \
    >"$apt/sources.list"
get() {
  apt-get -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root "$@"
}
built=$(dpkg-query -W -f '${Version}' gdal-bin)
source=$(dpkg-query -W -f '${source:Version}' gdal-bin)
work="$folder/work"
rm -rf "$work"
mkdir -p "$work/gdal" "$work/include/gdal_version_full"
cd "$work"
get update
get download "libgdal-dev=$built"
get source --download-only "gdal=$source"
dpkg-deb -x libgdal-dev_*.deb headers
tar -xf gdal_*.orig.tar.* --strip-components=1 -C gdal
cp headers/usr/include/gdal/gdal_version.h include/gdal_version_full/

"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" "pyarrow==$arrow"
"${PYTHON:-python3}" -m zipfile -e pyarrow-*.whl wheel
rm -rf "$folder/arrow"
mv wheel/pyarrow "$folder/arrow"

ogr=gdal/ogr/ogrsf_frmts
for part in driver dataset layer writerdataset writerlayer; do
  g++ -std=c++17 -O1 -fPIC -w -DGDAL_COMPILATION -Iinclude -Iheaders/usr/include/gdal \
    -Igdal/port -Igdal/gcore -Igdal/ogr -I$ogr -I$ogr/generic -I$ogr/mem -I$ogr/arrow_common \
    "-I$folder/arrow/include" \
    -c "$ogr/parquet/ogrparquet$part.cpp" -o "$part.o" 2>compiler.txt ||
    give_up "the driver does not compile: $(head -n 3 compiler.txt)"
done
major=${arrow%%.*}
# GDAL's own names are those of the program that loads the plugin.
g++ -shared -o plugin.so ./*.o "$folder/arrow/libarrow.so.${major}00" \
  "$folder/arrow/libparquet.so.${major}00" -Wl,-rpath,'$ORIGIN/../arrow'
mv plugin.so "$folder/drivers/ogr_Parquet.so"
cd "$folder"
rm -rf "$work" "$apt"
find arrow -mindepth 1 ! -name 'libarrow.so.*' ! -name 'libparquet.so.*' -delete
if ! GDAL_DRIVER_PATH="$folder/drivers" ogrinfo --formats | grep -q '^ *Parquet '; then
  rm "$folder/drivers/ogr_Parquet.so"
  give_up "the plugin was built, but GDAL does not load it"
fi

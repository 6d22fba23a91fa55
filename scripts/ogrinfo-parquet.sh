#!/bin/sh
# Give the system's `ogrinfo` the Parquet driver that Debian leaves out:
#
#   scripts/ogrinfo-parquet.sh FOLDER     then  GDAL_DRIVER_PATH=FOLDER/drivers ogrinfo ...
#
# GDAL's own driver, from the source package of the very GDAL that is installed, is compiled
# as a plugin against the Arrow library and headers in a pyarrow wheel.  Nothing is changed
# outside FOLDER/drivers, save that gdal-bin is installed where it is missing and this is root.
# A second run does nothing, nor does any where ogrinfo reads Parquet by itself.  Where it
# cannot be done it says why, and ends with status 1.
set -eu
. "$(dirname "$0")/own-folder.sh"

[ -f "$folder/drivers/ogr_Parquet.so" ] && exit 0

if ! command -v ogrinfo >/dev/null 2>&1; then
  { [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; } ||
    give_up "gdal-bin is not installed"
  { apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gdal-bin; } ||
    give_up "gdal-bin is not installed, and apt-get cannot install it"
fi
formats=$(ogrinfo --formats) || give_up "the ogrinfo that is installed does not run"
case "$formats" in *" Parquet "*) exit 0 ;; esac # no plugin is needed
[ ! -e "$folder/drivers" ] || give_up "$folder/drivers is there and is not ours: move it away"
command -v apt-get >/dev/null 2>&1 || give_up "GDAL's source is fetched by apt-get, which is not here"
command -v g++ >/dev/null 2>&1 || give_up "g++ is not installed"

# An Arrow of the driver's time, in a wheel with the C++ ABI of Debian's GDAL.
case "$(ogrinfo --version)" in
  "GDAL 3.6."*) arrow=13.0.0 ;;
  *) give_up "no fitting Arrow is known here for $(ogrinfo --version)" ;;
esac

start_work
cd "$work"
mkdir -p gdal drivers apt/lists/partial apt/cache/archives/partial include/gdal_version_full

# The system's package archives, with their sources, in lists of our own.
. /etc/os-release
apt="$work/apt"
apt-get update --print-uris |
  sed -n "s#^'\(.*\)/dists/\($VERSION_CODENAME[^/]*\)/InRelease'.*#deb \1 \2 main\ndeb-src \1 \2 main#p" \
    >"$apt/sources.list"
get() {
  apt-get -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root "$@" ||
    give_up "GDAL's source cannot be fetched by apt-get"
}
built=$(dpkg-query -W -f '${Version}' gdal-bin) || give_up "ogrinfo is not of the package gdal-bin"
source=$(dpkg-query -W -f '${source:Version}' gdal-bin)
get update
get download "libgdal-dev=$built"
get source --download-only "gdal=$source"
dpkg-deb -x libgdal-dev_*.deb headers
tar -xf gdal_*.orig.tar.* --strip-components=1 -C gdal
cp headers/usr/include/gdal/gdal_version.h include/gdal_version_full/

# Its wheels for x86_64 and aarch64.
cat >requirements.txt <<PINNED
pyarrow==$arrow --hash=sha256:69b6f9a089d116a82c3ed819eea8fe67dae6105f0d81eaf0fdd5e60d0c6e0944 \
  --hash=sha256:d1b4e7176443d12610874bb84d0060bf080f000ea9ed7c84b2801df851320295
PINNED
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary :all: --python-version 3.11 --platform "manylinux_2_28_$(uname -m)" \
  --require-hashes -r requirements.txt || give_up "pyarrow $arrow cannot be fetched"
"${PYTHON:-python3}" -m zipfile -e pyarrow-*.whl wheel

ogr=gdal/ogr/ogrsf_frmts
for part in driver dataset layer writerdataset writerlayer; do
  g++ -std=c++17 -O1 -fPIC -w -DGDAL_COMPILATION -Iinclude -Iheaders/usr/include/gdal \
    -Igdal/port -Igdal/gcore -Igdal/ogr -I$ogr -I$ogr/generic -I$ogr/mem -I$ogr/arrow_common \
    -Iwheel/pyarrow/include \
    -c "$ogr/parquet/ogrparquet$part.cpp" -o "$part.o" 2>compiler.txt ||
    give_up "the driver does not compile: $(head -n 3 compiler.txt)"
done
major=${arrow%%.*}
mkdir drivers/arrow
mv wheel/pyarrow/libarrow.so.* wheel/pyarrow/libparquet.so.* drivers/arrow/
# GDAL's own names are those of the program that loads the plugin.
g++ -shared -o drivers/ogr_Parquet.so ./*.o "drivers/arrow/libarrow.so.${major}00" \
  "drivers/arrow/libparquet.so.${major}00" -Wl,-rpath,'$ORIGIN/arrow' 2>compiler.txt ||
  give_up "the driver does not link: $(head -n 3 compiler.txt)"
case "$(GDAL_DRIVER_PATH="$work/drivers" ogrinfo --formats)" in
  *" Parquet "*) finish_work drivers drivers ;;
  *) give_up "the plugin was built, but GDAL does not load it" ;;
esac

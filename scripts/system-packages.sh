#!/bin/sh
# What the tests need from the system: a PostgreSQL server (for the ledger), PostGIS (for sources
# of places), a Java runtime (for Spark), mosquitto (for the OwnTracks relay) and Chromium (for the
# workbench's page).  Installed as root where they are missing; where that cannot be done this says
# so and ends well, and the tests that need them are skipped, and say so.
set -eu

has() {
  case "$1" in
    chromium) command -v chromium >/dev/null 2>&1 ;;
    java) command -v java >/dev/null 2>&1 ;;
    mosquitto) command -v mosquitto >/dev/null 2>&1 || [ -x /usr/sbin/mosquitto ] ;;
    postgresql)
      command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
      ;;
    postgis)
      command -v postgis >/dev/null 2>&1 ||
        ls /usr/share/postgresql/*/extension/postgis.control >/dev/null 2>&1
      ;;
  esac
}

install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"
}

missing=""
for package in chromium java mosquitto postgresql postgis; do
  has "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "not installed, and this is not root on a system with apt-get:$missing; their tests are skipped"
  exit 0
fi

left=""
apt-get update -qq || echo "apt-get cannot update its lists: is there a network?"
for package in $missing; do
  case "$package" in
    chromium) install chromium || : ;;
    java) install openjdk-17-jre-headless || install default-jre-headless || : ;;
    mosquitto) install mosquitto || : ;;
    postgresql) install postgresql || : ;;
    postgis) install postgresql-postgis || : ;;
  esac
  has "$package" || left="$left $package"
done
[ -z "$left" ] || echo "not installed, and apt-get cannot install it:$left; their tests are skipped"

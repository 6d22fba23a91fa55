#!/bin/sh
# What the tests need from the system: a PostgreSQL server (for the ledger) and a Java
# runtime (for Spark).  Installed as root where they are missing; otherwise the tests that
# need them are skipped, and say so.
set -eu

missing=""
command -v java >/dev/null 2>&1 || missing="$missing java"
command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "not installed, and this is not root on a system with apt-get:$missing; their tests are skipped"
  exit 0
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
for package in $missing; do
  case "$package" in
    java)
      apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless ||
        apt-get install -y -qq --no-install-recommends default-jre-headless
      ;;
    postgresql) apt-get install -y -qq --no-install-recommends postgresql ;;
  esac
done

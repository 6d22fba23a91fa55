# Sourced by scripts that build in FOLDER, their only argument: sets `folder`, where their
# results go, and `work`, a new folder in it that is removed in the end.  Nothing is removed
# but what a script made itself.

give_up() {
  echo "$(basename "$0"): $1" >&2
  exit 1
}

[ $# -eq 1 ] || give_up "give one folder to build in"
mkdir -p "$1" || give_up "the folder cannot be made"
folder=$(cd "$1" && pwd -P)
case "$folder" in
  / | "$(cd "${HOME:-/}" && pwd -P)") give_up "give a folder of its own, neither / nor your home" ;;
esac

start_work() {
  work=$(mktemp -d "$folder/whereish-XXXXXX") || give_up "the folder cannot be written to"
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
}

# finish_work MADE NAME: what was made in `work` gets its name in `folder`, all at once.
finish_work() {
  mv -T -n "$work/$1" "$folder/$2" || :
  [ ! -e "$work/$1" ] || give_up "$folder/$2 is there and is not ours: move it away"
}

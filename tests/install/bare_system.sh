#!/usr/bin/env bash
# Runs the commands of the README on a bare Debian or Ubuntu: a fresh system in a chroot, with git and
# nothing else, into which this repository (its last commit) is cloned.
#
#   tests/install/bare_system.sh [--quick] [--suite NAME] [--keep] FOLDER
#
#   --quick        install the dependencies, configure, build one library; default: the whole demo
#   --suite NAME   bookworm (Debian 12) or noble (Ubuntu 24.04) [default: bookworm]
#   --keep         leave FOLDER for inspection; default: remove it
#   FOLDER         place of the chroot; must not exist, be empty, or be left from an earlier test
#
# Prints the seconds of each step. Exit code 77: this machine cannot run the test, with the reason.
# Environment: MIRROR, the package mirror [default: the one that apt of this machine uses for NAME,
# else the distribution's own]; KEYRING, the file with the distribution's keys.
#
# Mounts are made in a mount namespace, and processes run in a PID namespace: both end with the script,
# however it ends.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
usage() {
  echo "usage: $0 [--quick] [--suite bookworm | noble] [--keep] FOLDER" >&2
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
quick=no keep=no suite=bookworm folder=
arguments=("$@")
while [[ $# -gt 0 ]]; do
  case "$1" in
    --quick) quick=yes ;;
    --keep) keep=yes ;;
    --suite) suite=${2:-}; shift ;;
    -*) usage ;;
    *) [[ -z $folder ]] || usage; folder=$1 ;;
  esac
  shift || usage
done
[[ -n $folder ]] || usage

case "$suite" in
  bookworm)
    distribution=debian components=main mirror=http://deb.debian.org/debian
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg ;;
  noble)
    distribution=ubuntu components=main,universe mirror=http://archive.ubuntu.com/ubuntu
    keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg ;;
  *) usage ;;
esac

PATH=$PATH:/usr/sbin:/sbin
[[ $(id -u) -eq 0 ]] || skip "a chroot needs root"
for program in debootstrap wget unshare git; do
  command -v "$program" > /dev/null || skip "$program is missing (apt-get install debootstrap git)"
done
keyring=${KEYRING:-$keyring}
[[ -f $keyring ]] || skip "$keyring is missing (package $distribution-keyring or $distribution-archive-keyring)"

if [[ -z ${IN_BARE_SYSTEM_NAMESPACE:-} ]]; then
  unshare --mount --pid --fork --kill-child true 2> /dev/null ||
    skip "this machine allows no mount and PID namespaces"
  IN_BARE_SYSTEM_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child "$0" "${arguments[@]}"
fi

# The mirror and the proxy that apt of this machine uses.
if command -v apt-get > /dev/null; then
  configured=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2> /dev/null |
    awk -v suite="$suite" '$2 == suite { print $1; exit }')
  mirror=${configured:-$mirror}
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  if [[ -n ${proxy:-} ]]; then export http_proxy=$proxy; fi
fi
mirror=${MIRROR:-${mirror%/}}
wget -q --timeout 20 --tries 2 -O /dev/null "$mirror/dists/$suite/InRelease" ||
  skip "no mirror: $mirror/dists/$suite cannot be reached"

# FOLDER is removed only if this script made it.
readonly mark=.bevatron-bare-system
if [[ -e $folder/$mark ]]; then rm -rf --one-file-system "$folder"; fi
mkdir -p "$folder"
folder=$(realpath "$folder")
[[ -z $(ls -A "$folder") ]] || fail "$folder is not empty, refusing to overwrite"
touch "$folder/$mark"
clean_up() {
  local status=$?
  trap - EXIT
  while mountpoint -q "$folder/proc"; do umount "$folder/proc"; done
  if [[ $keep == no ]]; then rm -rf --one-file-system "$folder"; fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

times=()
# timed NAME COMMAND...: the test ends if the command fails.
timed() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@" || fail "$name (after $((SECONDS - start)) s)"
  times+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
}
# A login shell of root there, with nothing of this machine's environment but the proxy.
inside() {
  chroot "$folder" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    ${http_proxy:+"http_proxy=$http_proxy"} /bin/bash -c "$1"
}

# Ubuntu's script of debootstrap has been the same since gutsy; an older debootstrap does not know the
# newest names.
scripts=/usr/share/debootstrap/scripts
script=$scripts/$suite
if [[ ! -e $script && $distribution == ubuntu ]]; then script=$scripts/gutsy; fi
bootstrap() {
  debootstrap --variant=minbase --include=git,ca-certificates --components="$components" \
    --keyring="$keyring" "$suite" "$folder" "$mirror" "$script" > "$folder.log" 2>&1 ||
    { tail -n 20 "$folder.log"; return 1; }
  rm -f "$folder.log"
}
timed "debootstrap $suite" bootstrap
# The PID namespace is new, so this shows the processes of the test alone.
mount -t proc proc "$folder/proc"
for program in make cmake g++ python3 sudo; do
  if inside "command -v $program" > /dev/null; then fail "the bare system has $program"; fi
done

# A bundle instead of the folder: git refuses to read a repository of another user.
git -c safe.directory='*' -C "$root" bundle create -q "$folder/root/bevatron.bundle" HEAD
timed "git clone" inside 'cd && git clone -q bevatron.bundle bevatron && cd bevatron && git log -1 --oneline'

# The README must list these commands exactly as written here.
readonly commands=("scripts/install-deps.sh" "make demo")
for command in "${commands[@]}"; do
  grep -qE "^    $command( +#.*)?\$" "$root/README.md" || fail "README.md has no command '$command'"
done
timed "${commands[0]}" inside "cd /root/bevatron && ${commands[0]}"
if [[ $quick == yes ]]; then
  timed "cmake --preset cpu-release" inside 'cd /root/bevatron && cmake --preset cpu-release'
  timed "cmake --build build --target bev_base" \
    inside 'cd /root/bevatron && cmake --build build --target bev_base'
else
  timed "make" inside "cd /root/bevatron && make"
  timed "${commands[1]}" inside "cd /root/bevatron && ${commands[1]}"
fi
echo "== passed: $suite from $mirror"
printf '%s\n' "${times[@]}"

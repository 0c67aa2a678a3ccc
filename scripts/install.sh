#!/usr/bin/env bash
# Installs the program from a build folder, or removes an installation.
#
#   scripts/install.sh BUILD          install what BUILD holds (make install)
#   scripts/install.sh --uninstall    remove what was installed (make uninstall)
#
# Environment: PREFIX, the folder to install into [default: /usr/local]; DESTDIR, a folder that stands
# for / while a package is made [default: none]. Below PREFIX:
#
#   bin/bevatron                                     the program
#   lib/bevatron/                                    plug-ins for MPI and Gloo, if they were built
#   share/bash-completion/completions/bevatron       completion for bash
#   share/zsh/site-functions/_bevatron               completion for zsh
#   share/man/man1/bevatron.1                        manual page
#   share/bevatron/configs/, share/bevatron/recipes/ recipes
#   share/bevatron/bin/                              wrappers named like Megatron-LM's scripts
#   share/doc/bevatron/                              documentation
#   share/bevatron/installed-files                   list of these files, for --uninstall
#
# Installing again first removes the files of the earlier installation. Files that a user added stay.
# The shared libraries that the program needs come from the system: scripts/bundle.sh makes a folder
# that includes them.
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix=${PREFIX:-/usr/local}
destination=${DESTDIR:-}

fail() {
  echo "install: $*" >&2
  exit 1
}

[[ $# -eq 1 ]] || { echo "usage: scripts/install.sh BUILD | --uninstall" >&2; exit 2; }
[[ $prefix == /* ]] || fail "PREFIX must be an absolute path, is '$prefix'"
[[ -z $destination || $destination == /* ]] || fail "DESTDIR must be an absolute path, is '$destination'"
readonly top=$destination${prefix%/}
readonly list=share/bevatron/installed-files

# Removes the files of an installation, then the folders below bevatron/ that are empty.
uninstall() {
  local file
  while IFS= read -r file; do
    [[ $file != /* && $file != *..* ]] || fail "$top/$list is damaged: '$file'"
    rm -f "$top/$file"
  done < "$top/$list"
  rm -f "$top/$list"
  for file in lib/bevatron share/bevatron share/doc/bevatron; do
    if [[ -d $top/$file ]]; then find "$top/$file" -depth -type d -empty -delete; fi
  done
}

if [[ $1 == --uninstall ]]; then
  [[ -f $top/$list ]] || fail "nothing is installed in $top (no $list)"
  uninstall
  echo "install: removed bevatron from $top"
  exit 0
fi

[[ -x $1/bevatron ]] || fail "no program $1/bevatron; run make first"
build=$(cd "$1" && pwd)
mkdir -p "$top" 2> /dev/null && [[ -w $top ]] ||
  fail "cannot write to $top; use sudo, or a folder of yours: make install PREFIX=\$HOME/.local"

# The program writes its completions and its manual page. It must run before anything is replaced.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bevatron" completion bash > "$work/bash" || fail "$build/bevatron does not run"
"$build/bevatron" completion zsh > "$work/zsh"
"$build/bevatron" help man > "$work/man"

if [[ -f $top/$list ]]; then uninstall; fi

# place MODE SOURCE FILE: copies a file to PREFIX/FILE and lists it.
place() {
  install -D -m "$1" "$2" "$top/$3"
  echo "$3" >> "$work/files"
}
# Debugging information is most of the size of a program.
place_stripped() {
  local stripped
  stripped=$work/$(basename "$2")
  strip --strip-unneeded -o "$stripped" "$2"
  place "$1" "$stripped" "$3"
}
# place_folder SOURCE FOLDER: all files of a folder.
place_folder() {
  local file
  while IFS= read -r file; do
    place 644 "$1/$file" "$2/$file"
  done < <(cd "$1" && find . -type f | sed 's|^\./||' | sort)
}

place_stripped 755 "$build/bevatron" bin/bevatron
for plugin in "$build"/libbevatron-*.so; do
  if [[ -f $plugin ]]; then place_stripped 644 "$plugin" "lib/bevatron/$(basename "$plugin")"; fi
done
place 644 "$work/bash" share/bash-completion/completions/bevatron
place 644 "$work/zsh" share/zsh/site-functions/_bevatron
place 644 "$work/man" share/man/man1/bevatron.1
for folder in configs recipes; do
  if [[ -d $root/$folder ]]; then place_folder "$root/$folder" "share/bevatron/$folder"; fi
done
for wrapper in "$root"/bin/*; do
  mode=644
  if [[ -x $wrapper ]]; then mode=755; fi
  place "$mode" "$wrapper" "share/bevatron/bin/$(basename "$wrapper")"
done
place 644 "$root/README.md" share/doc/bevatron/README.md
place_folder "$root/docs" share/doc/bevatron/docs
install -D -m 644 "$work/files" "$top/$list"

echo "install: $(wc -l < "$work/files") files in $top; the program is $top/bin/bevatron"

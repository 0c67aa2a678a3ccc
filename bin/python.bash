# Lets job scripts that start Megatron-LM's scripts with `python` run unedited: set BASH_ENV to this
# file, or source it. A script of which this folder has a wrapper is run by bevatron; every other use
# of python goes to python. Processes that srun or mpirun starts do not see these functions.
_bevatron_bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
_bevatron_python() {
  local word
  for word in "${@:2}"; do
    if [[ $word == *.py ]]; then
      if [[ -x $_bevatron_bin/${word##*/} ]]; then
        bevatron "$@"
        return
      fi
      break
    fi
  done
  command "$@"
}
python() { _bevatron_python python "$@"; }
python3() { _bevatron_python python3 "$@"; }

#!/usr/bin/env bash
# A Slurm of one machine, for as long as one command runs: munged, slurmctld and slurmd with keys,
# sockets and state in a temporary folder, without systemd and without touching a Slurm that is there.
#
#   tests/slurm/one_machine.sh srun -n 2 build/bevatron train ...
#   tests/slurm/one_machine.sh --check BEVATRON    what the test of that name runs
#
# The command finds SLURM_CONF set. The exit code is its own; 77 where a Slurm cannot run here, with a
# line that says why. REQUIRES Debian's slurm-wlm and munge, or the same programs on PATH.
set -euo pipefail

skip() {
  echo "skipped: $*"
  exit 77
}

PATH=$PATH:/usr/sbin:/sbin
for program in munged mungekey munge slurmctld slurmd srun scontrol; do
  [[ -n $(command -v "$program") ]] || skip "there is no $program (Debian: slurm-wlm, munge)"
done
(($# > 0)) || { echo "usage: $0 COMMAND ARGS... | --check BEVATRON" >&2; exit 2; }

# Short: paths of sockets have at most 107 characters.
folder=$(mktemp -d /tmp/slurm-XXXXXX)
chmod 755 "$folder"
started=()

stop() {
  local status=$? i
  trap - EXIT
  for ((i = ${#started[@]} - 1; i >= 0; --i)); do
    kill "${started[i]}" 2>/dev/null || true
  done
  for ((i = ${#started[@]} - 1; i >= 0; --i)); do
    for _ in $(seq 50); do
      kill -0 "${started[i]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "${started[i]}" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  rm -rf "$folder"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT TERM

# unable NAME: a daemon did not come up; its last words are the reason.
unable() {
  local words
  words=$(tail -n 3 "$folder/$1.log" 2>/dev/null | tr '\n' ' ')
  skip "$1 does not run here: ${words:-it said nothing}"
}

# comes_up SECONDS COMMAND...: waits for the daemon that was started last.
comes_up() {
  local tries=$(($1 * 10))
  shift
  for _ in $(seq "$tries"); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    kill -0 "${started[-1]}" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

free_ports() {
  # Those the system would give away anyhow, asked for by nobody at the moment.
  local port found=()
  while ((${#found[@]} < $1)); do
    port=$((RANDOM % 12000 + 20000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || found+=("$port")
  done
  echo "${found[@]}"
}

user=$(id -un)
host=$(hostname -s)
read -r control_port node_port < <(free_ports 2)

mkdir -m 700 "$folder/munge"
mungekey --create --keyfile "$folder/munge/key"
# --force: the folder above is not as strict as munged wants it.
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" --log-file="$folder/munged.log" \
  >>"$folder/munged.out" 2>&1 &
started+=($!)
comes_up 10 munge --socket="$folder/munge.socket" --no-input || unable munged

mkdir "$folder/state" "$folder/spool"
cat >"$folder/slurm.conf" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmctldPort=$control_port
SlurmdPort=$node_port
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:16
END
export SLURM_CONF=$folder/slurm.conf

slurmctld -D -f "$SLURM_CONF" >>"$folder/slurmctld.out" 2>&1 &
started+=($!)
comes_up 20 scontrol ping || unable slurmctld
# slurmd wants cgroups although nothing here uses them; which of its ways works depends on its version
# and on the machine, but none may want systemd.
is_up=no
for cgroups in "CgroupPlugin=disabled" "CgroupPlugin=cgroup/v1" \
  $'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes' "CgroupMountpoint=$folder/cgroup"; do
  echo "$cgroups" >"$folder/cgroup.conf"
  scontrol reconfigure >/dev/null 2>&1 || true
  slurmd -D -f "$SLURM_CONF" -N "$host" >>"$folder/slurmd.out" 2>&1 &
  started+=($!)
  if comes_up 30 bash -c "sinfo -h -o %T | grep -q -x -E 'idle|mixed'"; then
    is_up=yes
    break
  fi
done
[[ $is_up == yes ]] || unable slurmd

if [[ $1 != --check ]]; then
  echo "\$ $*"
  status=0
  "$@" || status=$?
  exit "$status"
fi

# The test: tasks find each other by what srun says, and shells of Slurm are no job of many.
bevatron=${2:?--check BEVATRON}
status=0
expect() {
  local wanted=$1 output
  shift
  echo "\$ $*"
  output=$("$@" 2>&1) || true
  echo "$output"
  if ! grep -q -E "$wanted" <<<"$output"; then
    echo "missing: $wanted"
    status=1
  fi
}
tasks=(srun --overcommit -n 2)
expect '^1 of 2, local 1, on .+, step 0$' "${tasks[@]}" sh -c \
  'echo $SLURM_PROCID of $SLURM_STEP_NUM_TASKS, local $SLURM_LOCALID, on $SLURM_STEP_NODELIST, step $SLURM_STEP_ID'
expect '^2 on this node$' "${tasks[@]}" sh -c 'echo $SLURM_STEP_TASKS_PER_NODE on this node'
train=("$bevatron" train --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64
  --max-position-embeddings 64 --micro-batch-size 1 --train-iters 3 --lr 1e-3 --device cpu --mock-data
  --model.vocab 256)
export HOME=$folder
expect '^ranks +2 processes on this host, started by srun;' "${tasks[@]}" "${train[@]}" \
  --train.output "$folder/tasks"
# The script of a batch job has the number of a task, too, and is alone all the same.
printf '#!/bin/sh\nexec' >"$folder/batch"
printf ' %q' "${train[@]}" --train.output "$folder/alone" >>"$folder/batch"
expect '^done after 3 iterations' bash -c \
  'sbatch --wait --overcommit -n 2 -o "$1.out" "$1" && cat "$1.out"' - "$folder/batch"
if grep -q -E 'processes|ranks' "$folder/batch.out"; then
  echo "a batch script took itself for one of many"
  status=1
fi
exit "$status"

#!/usr/bin/env bash
# Two hosts on one machine: network namespaces joined by a cable, one rank in each.
#
#   two_hosts.sh BEVATRON [WIRE]
#
# Shows that a training over it ends with the loss of one process, that both sides end with clear words
# when the cable is cut, and that it goes on where every packet takes 200 ms. Needs root and namespaces:
# exit code 77 where it may not. WIRE: a program that is a slow cable where the system has no netem.
set -euo pipefail
bevatron=$(readlink -f "$1") wire=${2:+$(readlink -f "$2")}
work=$(mktemp -d)
left=bev-l$$ right=bev-r$$
here=10.213.47.1 there=10.213.47.2 port=29511

skip() {
  echo "skipped: $1"
  exit 77
}
fail() {
  echo "FAILED: $1"
  exit 1
}
processes=()
clean() {
  for process in "${processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
  ip netns del $left 2>/dev/null || true
  ip netns del $right 2>/dev/null || true
  rm -rf "$work"
}
trap clean EXIT

[[ $(id -u) = 0 ]] || skip "network namespaces need root"
command -v ip >/dev/null || skip "there is no ip (iproute2)"
[[ -f $(dirname "$bevatron")/libbevatron-gloo.so ]] || skip "this build has no gloo engine"
ip netns add $left 2>"$work/why" && ip netns add $right 2>"$work/why" &&
  ip link add cable netns $left type veth peer name cable netns $right 2>"$work/why" ||
  skip "network namespaces cannot be made here: $(<"$work/why")"

address() {  # namespace address device
  ip -n "$1" address add "$2/24" dev "$3"
  ip -n "$1" link set "$3" up
  ip -n "$1" link set lo up
}
address $left $here cable
address $right $there cable

training=(train --data.mock true --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32
  --micro-batch-size 1 --global-batch-size 4 --lr 1e-3 --device cpu --model.vocab 100 --log-interval 1
  --eval-iters 0)
export BEVATRON_SECRET="a secret of this test, long enough"

# Starts one rank on each host; their streams are NAME.0 and NAME.1.
start() {  # name iterations flags
  local name=$1 iterations=$2 node namespace
  shift 2
  processes=()
  for node in 0 1; do
    [[ $node = 0 ]] && namespace=$left || namespace=$right
    # No shell in between, so that its number is that of the launcher.
    ip netns exec $namespace "$bevatron" launch --nnodes 2 --node_rank $node \
      --rdzv_endpoint $here:$port "${training[@]}" --train-iters "$iterations" \
      --train.output "$work/run-$name-$node" "$@" >"$work/$name.out.$node" 2>"$work/$name.err.$node" &
    processes+=($!)
  done
}
ended() {  # the exit codes of both, "0 0"
  local codes=() process
  for process in "${processes[@]}"; do
    local code=0
    wait "$process" || code=$?
    codes+=($code)
  done
  processes=()
  echo "${codes[*]}" >"$work/codes"
}
await() {  # seconds command...
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < until)) || return 1
    sleep 0.1
  done
}
show() {  # name: what both said
  local node
  for node in 0 1; do
    echo "--- host $node, stderr"
    cat "$work/$1.err.$node"
  done
}
loss() { sed -n 's/.*| lm loss: \([^ ]*\).*/\1/p' "$1" | tail -n 1; }
steps() { grep -c ' iteration ' "$1" || true; }

echo "=== 30 steps over the cable"
start whole 30 --train.output "$work/run"
ended
show whole
"$bevatron" "${training[@]}" --threads 2 --train-iters 30 >"$work/threads.out" 2>"$work/threads.err"
[[ $(<"$work/codes") = "0 0" ]] || fail "exit codes $(<"$work/codes")"
echo "loss by processes $(loss "$work/whole.out.0"), by threads $(loss "$work/threads.out")"
[[ -n $(loss "$work/whole.out.0") && $(loss "$work/whole.out.0") = "$(loss "$work/threads.out")" ]] ||
  fail "the losses differ"

echo "=== the cable is cut"
start cut 1000000 --train.output "$work/run" --parallel.heartbeat_warning_seconds 1 --parallel.timeout_minutes 0.1
await 30 grep -q ' iteration        5/' "$work/cut.out.0" || { show cut; fail "it does not train"; }
cut_at=$SECONDS
ip -n $left link set cable down
ended
took=$((SECONDS - cut_at))
show cut
echo "both had ended $took s after the cut, with exit codes $(<"$work/codes")"
[[ $(<"$work/codes") = "5 5" ]] || fail "exit codes $(<"$work/codes"), not 5 5"
grep -q 'rank 1 (host .* is gone: ' "$work/cut.err.0" || fail "host 0 does not name rank 1"
grep -q 'rank 0 (host .* is gone: ' "$work/cut.err.1" || fail "host 1 does not name rank 0"
((took <= 20)) || fail "it took too long"
ip -n $left link set cable up

echo "=== every packet takes 200 ms for a while"
if ip netns exec $left tc qdisc add dev cable root netem delay 200ms 2>/dev/null; then
  ip netns exec $left tc qdisc del dev cable root
  slow() { ip netns exec $left tc qdisc add dev cable root netem delay 200ms; }
  quick() { ip netns exec $left tc qdisc del dev cable root; }
elif [[ -n $wire && -c /dev/net/tun ]]; then
  echo "the system has no netem: the cable is a program from here on"
  here=10.213.48.1 there=10.213.48.2
  "$wire" /run/netns/$left /run/netns/$right slow &
  wire_process=$!
  await 5 ip -n $right link show slow >/dev/null 2>&1 || fail "the cable does not come up"
  address $left $here slow
  address $right $there slow
  slow() { kill -USR1 $wire_process; }
  quick() { kill -USR2 $wire_process; }
else
  echo "the system has no netem and no tun: left out"
  exit 0
fi
start slow 1000000 --train.output "$work/run" --parallel.heartbeat_warning_seconds 3 --parallel.timeout_minutes 0.5
[[ -z ${wire_process:-} ]] || processes+=($wire_process)
await 30 grep -q ' iteration        5/' "$work/slow.out.0" || { show slow; fail "it does not train"; }
slow
before=$(steps "$work/slow.out.0")
sleep 10
during=$(steps "$work/slow.out.0")
quick
sleep 2
after=$(steps "$work/slow.out.0")
kill -TERM "${processes[0]}"
unset 'processes[2]'
ended
show slow
echo "steps before $before, in 10 s of delay $((during - before)), in 2 s behind it $((after - during))"
[[ -z ${wire_process:-} ]] || kill "$wire_process"
[[ $(<"$work/codes") = "0 0" ]] || fail "exit codes $(<"$work/codes")"
((during > before)) || fail "it stood still"
((after - during > during - before)) || fail "the delay was none, or it does not recover"
grep -q "has been silent" "$work/slow.err.0" && fail "a slow rank was called silent"
echo "all good"

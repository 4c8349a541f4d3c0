#!/bin/bash
# Qwen3-8B on several machines: weights sharded over all of them, a vLLM engine on each.
#
#     sbatch --nodes 2 experiments/qwen3_8b/nodes.sh                  # SLURM, from the clone's folder; 4 likewise
#     RANK=0 NODES=2 HEAD=10.0.0.1 experiments/qwen3_8b/nodes.sh      # without SLURM: on each machine, with its own RANK
#
# Arguments are passed on to `ecomlab train`. With a vLLM server that samples for all, beside the trainers:
#
#     SERVER=1 sbatch --nodes 3 experiments/qwen3_8b/nodes.sh         # SLURM: the last machine serves, two train
#     SERVER=1 experiments/qwen3_8b/nodes.sh                          # without: on the machine that serves; on the others
#         RANK=... NODES=... HEAD=... experiments/qwen3_8b/nodes.sh \
#             --set generation=vllm-server --set vllm_address=http://10.0.0.9:8000
#
# Another run, and machines of four GPUs, of which there are eight by default:
#
#     CONFIG=experiments/qwen3_8b/c8.toml GPUS=4 sbatch --nodes 2 --gpus-per-node 4 experiments/qwen3_8b/nodes.sh
#
# The clone and the run's folder are on a file system that all machines see. The same command goes on from the last
# checkpoint, which SLURM gives again when it requeues. Twenty minutes before its time is over the run saves its step
# and ends. A step has 64 groups on any number of machines; PROMPTS=128 has more. One GPU plays the same steps with
# --set prompts_per_step=64 --set generation=vllm-colocate.
#SBATCH --job-name=qwen3-8b
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --time=1-00:00:00
#SBATCH --requeue
#SBATCH --signal=USR1@1200
set -euo pipefail
here=experiments/qwen3_8b
config=${CONFIG:-$here/train.toml}
gpus=${GPUS:-8}
trap '' USR1 # srun and the launcher inherit this; the processes that train note the signal

if [ -z "${RANK:-}" ] && [ -n "${SLURM_JOB_NODELIST:-}" ]; then # the batch script, which starts itself on every node
  mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
  export HEAD=${nodes[0]} NODES=$SLURM_NNODES
  # a task would otherwise have one core for its eight processes
  export SRUN_CPUS_PER_TASK=${SLURM_CPUS_ON_NODE:-1} SLURM_CPU_BIND=none
  each='RANK=$SLURM_NODEID exec '$here'/nodes.sh "$@"'
  [ -n "${SERVER:-}" ] || exec srun bash -c "$each" nodes.sh "$@"

  last=${nodes[-1]} NODES=$((SLURM_NNODES - 1))
  [ "$NODES" -gt 0 ] || { echo "SERVER=1 needs a machine that trains beside the one that serves: --nodes 2" >&2; exit 1; }
  srun --nodes=1 --ntasks=1 --nodelist="$last" bash -c "RANK=server exec $here/nodes.sh "'"$@"' nodes.sh "$@" &
  server=$!
  trap 'kill $server 2>/dev/null' EXIT
  until (exec 3<>"/dev/tcp/$last/8000") 2>/dev/null; do # it loads the model
    kill -0 $server 2>/dev/null || { echo "the vLLM server on $last has ended; its words are above" >&2; exit 1; }
    sleep "${PAUSE:-5}"
  done
  SERVER='' srun --nodes="$NODES" --ntasks="$NODES" --exclude="$last" bash -c "$each" nodes.sh \
    --set generation=vllm-server --set vllm_address="http://$last:8000" "$@"
  exit
fi

if [ -n "${SERVER:-}" ]; then # an engine on each of the machine's GPUs, behind one address: an 8B fits on one
  serving=$(python - "$config" "$@" <<'END'
import sys
from itertools import pairwise
from pathlib import Path

from ecomlab.options import settings
from ecomlab.training.config import from_toml
from ecomlab.training.estimate import serving

changes = [word for before, word in pairwise(sys.argv[2:]) if before == "--set"]
print(serving(from_toml(Path(sys.argv[1]), settings(changes))))
END
  )
  eval "exec env $serving --data-parallel-size $gpus"
fi

: "${NODES:?is not set: the number of machines that train}"
: "${RANK:?is not set: the number of this machine, from 0}"
: "${HEAD:?is not set: the address of the machine whose RANK is 0}"
processes=$((NODES * gpus))
accelerate launch --config_file $here/fsdp.yaml \
  --num_machines "$NODES" --machine_rank "$RANK" --num_processes "$processes" \
  --main_process_ip "$HEAD" --main_process_port "${PORT:-29500}" \
  -m ecomlab train --config "$config" --set generation=vllm-colocate \
  --set prompts_per_step=${PROMPTS:-64} "$@" &
launcher=$!
# SLURM signals this shell alone, and torch's launcher passes no SIGUSR1 on
trap 'pkill -USR1 -P $launcher || true' USR1
trap 'kill $launcher 2>/dev/null || true' TERM INT
while :; do # a signal ends `wait`, with the signal's number
  wait $launcher || true
  kill -0 $launcher 2>/dev/null || break
done
wait $launcher # bash remembers the launcher's own status

#!/bin/bash
# Qwen3-8B on several machines of eight GPUs: weights sharded over all of them, a vLLM engine on each.
#
#     sbatch --nodes 2 experiments/qwen3_8b/nodes.sh                  # SLURM, from the clone's folder; 4 likewise
#     RANK=0 NODES=2 HEAD=10.0.0.1 experiments/qwen3_8b/nodes.sh      # without SLURM: on each machine, with its own RANK
#
# Arguments are passed on to `ecomlab train`. With a vLLM server on a further machine, started by the line that the dry run
# prints for it:  nodes.sh --set generation=vllm-server --set vllm_address=http://SERVER:8000
#
# The clone and the run's folder are on a file system that all machines see. The same command goes on from the last
# checkpoint, which SLURM gives again when it requeues. A step has two groups for each GPU, so it grows with the machines.
#SBATCH --job-name=qwen3-8b
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=1-00:00:00
#SBATCH --requeue
set -euo pipefail
here=experiments/qwen3_8b

if [ -z "${RANK:-}" ]; then # the batch script: once more on every node, as which it then has a RANK
  HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  export HEAD NODES="$SLURM_NNODES"
  exec srun bash -c 'RANK=$SLURM_NODEID exec '$here'/nodes.sh "$@"' nodes.sh "$@"
fi

processes=$((NODES * ${GPUS:-8}))
exec accelerate launch --config_file $here/fsdp.yaml \
  --num_machines "$NODES" --machine_rank "$RANK" --num_processes "$processes" \
  --main_process_ip "$HEAD" --main_process_port "${PORT:-29500}" \
  -m ecomlab train --config $here/train.toml --set generation=vllm-colocate \
  --set prompts_per_step=$((2 * processes)) "$@"

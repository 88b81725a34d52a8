# ruff: noqa: E501  # a line of a log is one line here too
"""Made-up everyday log lines in which no rule should hit; the selection of triggers counts literals in them."""

CHATTER = r"""
Loading checkpoint shards: 100% 4/4 and all the weights were initialized from the model checkpoint
Using pad_token, but it is not set yet. The tokenizer will be resized to a multiple of 128
The attention mask is not set and cannot be inferred from input. Results may be unexpected
You are using a model of type gpt2 to instantiate a model of type toy. This is not supported for all configurations
Token indices sequence length is longer than the specified maximum sequence length for this model (2210 > 2048)
huggingface/tokenizers: The current process just got forked, after parallelism has already been used
Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded
The AccumulateGrad node's stream does not match the stream of the node that produced the incoming gradient
UserWarning: The reduce argument of scatter is deprecated and will be removed in a future release
FutureWarning: Please use the new API settings to control TF32 behaviour, such as torch.backends.cuda.matmul
Detected kernel version 4.18.0, which is below the recommended minimum of 5.5.0
Filtering content: reading manifest, scanning 2048 shards, checking sizes and signatures of the local files
Building the extension with ninja, this may take a while after every update of the compiler
> compiling and loading fused kernels ... done with compiling and loading fused kernels. Compilation time: 3.1 seconds
> building indices for shuffled samples, number of documents: 304230423, number of epochs: 1
loaded indexed file in 0.012 seconds, total number of samples: 117187501, total number of epochs: 1
[INFO] [stage3.py:150:step] parameter offload: total persistent parameters: 516096 in 145 params
[INFO] [utils.py:800:see_memory_usage] MA 13.57 GB  Max_MA 14.86 GB  CA 15.65 GB  Max_CA 16 GB
[INFO] [logging.py:61] Adding optimizer hooks, registering state for parameters of group 3, weight decay 0.1
using world size: 64, data-parallel size: 8, tensor-model-parallel size: 4, pipeline-model-parallel size: 2
time to build dataset: 0.42, batch generator: 1.23 | forward-compute: 411.2 | backward-compute: 820.4
wandb: Tracking run with wandb version 0.19, run data is saved locally, view project at the address above
wandb: Network issue resolved after 0:01:10, resuming normal operation with the retry queue
2026-03-02 11:39:58,120 - root - INFO - Creating the optimizer, the scheduler and the mixed precision policy
2026-03-02 11:40:01.332 | INFO | trainer.setup:prepare:88 - Preparing the model, compiling every transformer block
[Gloo] Rank 5 is connected to 11 peer ranks. Expected number of connected peer ranks is : 11
NCCL version 2.21.5+cuda12.4, using the default network plugin, setting affinity for GPU 3 to ffff
Started local worker group, restart count 0, master address of the first node, group world size 8
starting workers for entrypoint: python, local world size 8, monitor interval 0.1, role default
(raylet) Spilled 4096 MiB, 12 objects, write throughput 900 MiB/s. Set a variable to disable this message
(WorkerDict pid=4188) collected 512 trajectories, average reward 0.31, response length mean 812.4, clip ratio 0.02
prologue of the batch script: modules loaded, container image mounted, environment exported to all tasks
srun: Step created for StepId=77.1, tasks distributed over nodes in block order, cpu binding by cores
slurmstepd: task affinity: cores are bound, memory bound to the local node, step memory recorded
Warning: Permanently added the address of the node to the list of known hosts
evaluating 2000 questions: accuracy 0.412, exact match 0.330, tokens a second 31210, batches left 14
{"step": 120, "time": 3.11, "memory_reserved": 71.2, "tokens": 4194304, "mfu": 0.412, "epoch": 0.02}
tensor([[ 0.1432, -0.2210,  0.0931], [ 1.2210,  0.0101, -0.4410]], device='cuda:3', dtype=torch.bfloat16)
Number of parameters in transformer block: 805306368, in embedding: 65667072, most loaded shard: 870973440
Theoretical memory footprints: weight and optimizer=15210.11 MB, activation=2210.00 MB, total=17420.11 MB
installing pip packages from the lock file, resolving dependencies, building wheels for collected packages
Downloading shard 12 of 80 from the object store, 512 MiB at 210 MiB/s, retry 0, cached files are kept
systemd[1]: Started Session 31 of user root, reached target network, created slice of the container
kernel: nvidia-nvlink: Nvlink Core is being initialized, major device number 510, module verification skipped
kernel: perf: interrupt took too long (2511 > 2500), lowering kernel.perf_event_max_sample_rate to 79750
ntpd[812]: synchronized to the time server, stratum 3, offset within limits, status OK after 12 samples
crond[301]: (root) CMD (run-parts of the hourly directory, rotated and compressed log files of the node)
lustre: the client is reconnecting to the metadata target, requests were completed after a short wait
Enabling RoPE scaling, attention softmax in fp32, distributed optimizer with overlapped gradient reduce
setting number of micro-batches to constant 16; arguments: add_bias_linear, add_qkv_bias, adlr_autoresume
model-parallel generator seeds were restored from the state; sampling with replacement, temperature 0.7
Compiled graph 3 of 8 in 12.1 s, guard count 210, cache hit in the inductor directory, autotuning with 12 choices
registered hooks for the profiler: wait=5, warmup=2, active=3, writing trace files to the output directory
pruning old checkpoints, keeping the best 3 and the latest one, deleted the directory of step 4000
Restored all states from the checkpoint at the last step, skipping the first 1200 batches of the data order
""".strip().encode()

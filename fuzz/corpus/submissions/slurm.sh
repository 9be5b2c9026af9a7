#!/bin/sh
#SBATCH --job-name=bert
#SBATCH --gres=gpu:a100:2 --time=02:30:00
#SBATCH -c 8 --mem=64G --array=1,3,5-7%2
#SBATCH --dependency=afterok:12:13 --begin=now+1hour
python train.py "$SLURM_ARRAY_TASK_ID"

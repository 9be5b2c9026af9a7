#!/bin/sh
#SBATCH -N1 -n1 --gpus-per-node=2 --mem-per-gpu=10G -t 1-0 -d singleton
#SBATCH --begin=2027-01-01T00:00:00 --signal=B:TERM@60 --requeue
#SBATCH -o out-%A_%a.txt --mail-type=END,FAIL --export=ALL,A=1

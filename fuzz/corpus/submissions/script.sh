#!/bin/bash
#CARMA --gpus 2 --mem 12G --name "night run"
#CARMA --time 1-12:00:00 --array 0-9:3%2
#CARMA --after 12:ok --env LR=0.1
srun python train.py

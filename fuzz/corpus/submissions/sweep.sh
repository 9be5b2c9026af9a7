#!/bin/sh
#CARMA --param lr=0.1,0.01 --param seed=1..5 --hold --exclusive --mode mps
python t.py --lr {lr} --seed {seed}
